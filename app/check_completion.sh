#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: check_completion.sh SOFTHCAD SOFTHCA SOFTHCA-PERF SOURCE
# What bash completes of the three programs' command lines.
set -uo pipefail
failed=0 softhca=$2
declare -A path=([softhcad]=$1 [softhca]=$2 [softhca-perf]=$3)
# As if the tool were installed.
# shellcheck disable=SC2317
softhca() { "$softhca" "$@"; }
for file in softhcad softhca; do
	# shellcheck source=/dev/null
	. "$4/app/$file/completion.bash"
done
# shellcheck source=/dev/null
. "$4/bench/path/completion.bash"

# completes WORDS... -- EXPECTED...: the last word becomes all of these, among others.
completes() {
	local program=$1 function missing='' offered
	COMP_WORDS=()
	while [ "$1" != -- ]; do
		COMP_WORDS+=("$1")
		shift
	done
	shift
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
	COMP_WORDS[0]=${path[$program]}
	function=$(complete -p "$program" | sed 's/.*-F \([a-z_]*\).*/\1/')
	"$function" "$program" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
	offered=" ${COMPREPLY[*]} "
	for word in "$@"; do
		[[ $offered == *" $word "* ]] || missing="$missing $word"
	done
	if [ -z "$missing" ] && { [ $# -gt 0 ] || [ ${#COMPREPLY[@]} -eq 0 ]; }; then
		echo "ok $program ${COMP_WORDS[*]:1}"
	else
		failed=1
		echo "FAIL $program ${COMP_WORDS[*]:1}: not$missing, but$offered"
	fi
}

completes softhca re -- remove reload resume
completes softhcad --c -- --config --check
completes softhcad '' -- --set --socket --version
completes softhcad -c '' --
completes softhcad --set d -- daemon.
completes softhcad --set h -- hca0. hca1.
completes softhcad --set daemon.po -- daemon.poll=
completes softhcad --set hca1.lo -- hca1.loss=
completes softhcad -c "$4/config/service.conf" --set h -- hca0.
completes softhca-perf write -- write_bw write_lat write_imm_bw write_imm_lat
completes softhca-perf f -- flush_bw flush_lat
completes softhca-perf write_bw --v -- --verify
completes softhca-perf write_bw --sp -- --span
completes softhca-perf write_bw -c U -- UC UD
completes softhca-perf atomic_bw -A C -- CMP_AND_SWAP
completes softhca-perf write_bw -n '' --
exit $failed
