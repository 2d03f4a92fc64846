# SPDX-License-Identifier: BSD-3-Clause
# bash completion for softhca-perf(1): options and tests as --help lists them; HCAs as softhca(1) completes them.
_softhca_perf() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} help words='' socket=() i
	for ((i = 1; i < COMP_CWORD; i++)); do
		[ "${COMP_WORDS[i]}" != --socket ] || socket=(--socket "${COMP_WORDS[i + 1]}")
	done
	case $before in
	--socket | --limit) return ;; # bash completes files
	-c | --connection) words='RC UC UD' ;;
	-A | --atomic_type) words='CMP_AND_SWAP FETCH_AND_ADD' ;;
	-d | --ib-dev | --pair)
		words=$(softhca complete status "${socket[@]}" --hca '' 2>/dev/null)
		if [ "$before" = --pair ] && [[ $word == *,* ]]; then
			words=$(compgen -P "${word%%,*}," -W "$words")
		elif [ "$before" = --pair ]; then
			compopt -o nospace 2>/dev/null
			words=$(compgen -S , -W "$words")
		fi
		;;
	-[a-zA-Z])
		[[ $before == -[abe] ]] || return
		;;
	esac
	if [ -z "$words" ]; then
		help=$("${COMP_WORDS[0]}" --help 2>/dev/null)
		words=$(grep -oE '^ +(-[A-Za-z], )? *--[a-z_-]+' <<<"$help" | grep -oE -e '--[a-z_-]+')
		# TEST: {write,send,...}_{bw,lat}
		[[ $word == -* ]] || words=$(sed -n 's/^TEST: {\(.*\)}_{bw,lat}$/\1/p' <<<"$help" | tr , '\n' | sed 's/.*/&_bw &_lat/')
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _softhca_perf softhca-perf
