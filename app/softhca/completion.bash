# SPDX-License-Identifier: BSD-3-Clause
# bash completion for softhca(1): the tool itself knows its commands, options and HCAs.
_softhca() {
	local i
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = run ] && declare -F _command_offset >/dev/null; then
			_command_offset $((i + 1))
			return
		fi
	done
	mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _softhca softhca
