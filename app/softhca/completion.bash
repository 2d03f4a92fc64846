# SPDX-License-Identifier: BSD-3-Clause
# bash completion for softhca(1): the tool itself knows its commands, options, HCAs, queue pairs and settings.
_softhca() {
	local i
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = run ] && declare -F _command_offset >/dev/null; then
			for ((i++; i < COMP_CWORD; i++)); do
				case ${COMP_WORDS[i]} in
				--) i=$((i + 1)) && break ;;
				--socket | --libdir) i=$((i + 1)) ;;
				-*) ;;
				*) break ;;
				esac
			done
			if [ "$i" -lt "$COMP_CWORD" ] || [[ ${COMP_WORDS[COMP_CWORD]} != -* ]]; then
				_command_offset "$i"
				return
			fi
			break
		fi
	done
	mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _softhca softhca
