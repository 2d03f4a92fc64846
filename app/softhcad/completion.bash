# SPDX-License-Identifier: BSD-3-Clause
# bash completion for softhcad(8): options as --help lists them, sections and settings as --print-config and the file do.

# The file that -c names; else the built-in configuration.
_softhcad_config() {
	local i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-c | --config)
			cat "${COMP_WORDS[i + 1]}" 2>/dev/null
			return
			;;
		esac
	done
	"${COMP_WORDS[0]}" --print-config 2>/dev/null
}

# The keys of a section's kind, daemon or hca.
_softhcad_keys() {
	"${COMP_WORDS[0]}" --print-config 2>/dev/null |
		awk -v kind="$1" '/^\[/ { ours = substr($1, 2) ~ "^" kind } ours && /^#?[a-z_.]+ =/ { sub(/^#/, ""); print $1 }'
}

_softhcad() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} section kind=hca
	case $before in
	-c | --config | --socket) return ;; # bash completes files
	--set)
		compopt -o nospace 2>/dev/null
		section=${word%%.*}
		if [[ $word != *.* ]]; then
			mapfile -t COMPREPLY < <(compgen -S . -W "daemon $(_softhcad_config | sed -n 's/^\[hca \([^]]*\)\].*/\1/p')" -- "$word")
		elif [[ $word != *=* ]]; then
			[ "$section" != daemon ] || kind=daemon
			mapfile -t COMPREPLY < <(compgen -P "$section." -S = -W "$(_softhcad_keys $kind)" -- "${word#*.}")
		fi
		return
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" --help 2>/dev/null | grep -oE '^ +(-[a-z], )? *--[a-z-]+' | grep -oE -e '--[a-z-]+')" -- "$word")
}
complete -o default -F _softhcad softhcad
