# session.bash - what runs around each command of a session; session.c starts it, session.h tells the theory.
#
#     bash -c BOOT ARG0
#
# Descriptors: 60 and 61 are the two parts of this file, between which stands "#="; 62 is the session's state,
# or nothing; 63 holds texts that end with NULs: the command line, where a session without a state begins, the
# directory given with this command ("" for none), and the variables given with it (NAME=value); 64 takes the
# new state. A state is a program that bash itself wrote: below. The first one, of a session that begins with
# variables, is session.c's, and takes them from the end of the texts.
#
# Most of what this costs is that bash reads it, character by character, and that it copies functions. So what
# is seldom needed is read when it is, and only what must be a function is one. The build drops comments and
# indentation. What is called __tombolo... is ours and is never kept. No line may cost a fork.

mapfile -d '' -t __tombolo <&63
BASH_EXECUTION_STRING=$__tombolo

# While descriptors are redirected bash saves them as 10 and 11, closed in children. Copies of those are
# closed in them, too; and `exec` with a redirection of such a number changes nothing, without a word.
{ exec 60<&- 63<&- 65<&10 66>&11; } 61<&- 64>&-
exec 61<&- 64>&-

# Aliases and POSIX mode would change how bash reads the other part.
__tombolo_save() {
	__tombolo_status=${1-}
	local __tombolo_set=$SHELLOPTS __tombolo_shopt=$BASHOPTS -
	set +eEfnTuvx +o posix
	builtin shopt -u expand_aliases extdebug localvar_inherit
	. /dev/fd/65 save >&66
}

{
	__tombolo_pwd=("${__tombolo[1]}")
	__tombolo_born=$BASHOPTS$SHELLOPTS
	if [ -e /dev/fd/62 ]; then
		. /dev/fd/62
		exec 62<&-
	fi
	builtin cd -- "${__tombolo_pwd[0]}" || builtin cd -- ~ || builtin cd /
	if ((${#__tombolo_pwd[@]} > 1)); then OLDPWD=${__tombolo_pwd[1]}; else builtin unset -v OLDPWD; fi
	builtin trap '{ __tombolo_save; } >/dev/null 2>&1' EXIT
	case $__tombolo in *trap*) . /dev/fd/65 trap ;; esac
	[ "${#__tombolo[@]}${__tombolo[2]}" = 3 ] || . /dev/fd/65 given
	# At last: options print, change, or end what follows.
	[ ! "$__tombolo_set" ] || builtin eval "$__tombolo_set"
} >/dev/null 2>&1

#=
# The new state: at the end of the command line, at `exit`, or in the trap, whichever comes first. Without its
# last line it counts for nothing: so it is when somebody made names of ours read-only. Neither does it when
# anything stands before the names: so it is when a command wrote to 66, which `exec 66>file` does not take away.
if [ "$1" = save ]; then
	local -a __tombolo_v __tombolo_same && local __tombolo_i || return
	builtin trap '' XFSZ
	((${#__tombolo[@]} == 3)) || . /dev/fd/65 aside
	# Every variable but ours and those that mean nothing to another bash. The names pass through the new
	# state, as comments: there is no other place for them that is not a fork away.
	__tombolo_i='__tombolo*|BASH|BASHOPTS|BASHPID|BASH_@(A*|CMDS|COMMAND|EXECUTION_STRING|L*|MONOSECONDS)'
	__tombolo_i+='|BASH_@(S*|TRAPSIG|VERS*)|COMP_WORDBREAKS|DIRSTACK|EPOCH@(REALTIME|SECONDS)|EUID'
	__tombolo_i+='|FUNCNAME|GROUPS|HISTCMD|HOSTTYPE|LINENO|MACHTYPE|OLDPWD|OSTYPE|PIPESTATUS|PPID|PWD'
	__tombolo_i+='|RANDOM|SECONDS|SHELLOPTS|SRANDOM|UID|_'
	builtin shopt -s extglob
	builtin compgen -v -P '#=' -X "@($__tombolo_i)"
	mapfile -t __tombolo_v </dev/fd/66
	builtin declare -p "${__tombolo_v[@]#??}"
	((${#__tombolo[@]} == 3)) || for __tombolo_i in "${__tombolo_same[@]}"; do
		builtin declare -gx "$__tombolo_i"
	done
	# What a new bash is born with, and this one has not.
	[ "${HOME@a}${LANG@a}${LC_ALL@a}${LOGNAME@a}${PATH@a}${SHELL@a}${USER@a}" = xxxxxxx ] ||
		. /dev/fd/65 less
	[ "$__tombolo_shopt$__tombolo_set" = "$__tombolo_born" ] || . /dev/fd/65 options
	[ "$PWD" = "${__tombolo[2]}" ] || __tombolo_pwd=("$PWD" ${OLDPWD+"$OLDPWD"})
	builtin printf '__tombolo_pwd=(%s %s)\n' "${__tombolo_pwd[0]@Q}" "${__tombolo_pwd[1]@Q}"
	builtin unset -f __tombolo_save ${__tombolo_exit+"exit"}
	builtin declare -f
	builtin declare -F
	builtin alias -p
	builtin umask -p
	builtin printf '#kept\n'
	# As it was: the command's own EXIT trap may follow.
	builtin shopt -u extglob
	[ "$BASHOPTS" = "$__tombolo_shopt" ] || . /dev/fd/65 back
	__tombolo_save() { __tombolo_status=${1-}; }
	return
fi

# What is seldom needed; each of these ends the reading.
if [ "$1" = given ]; then
	# Applies what was given with the command, and remembers what that hides.
	if [ -n "${__tombolo[2]}" ]; then
		__tombolo_pwd=("$PWD" ${OLDPWD+"$OLDPWD"})
		builtin cd -- "${__tombolo[2]}"
		__tombolo[2]=$PWD
	fi
	for ((__tombolo_i = 3; __tombolo_i < ${#__tombolo[@]}; __tombolo_i++)); do
		__tombolo_v="${__tombolo[__tombolo_i]%%=*}[@]"
		__tombolo_hidden[__tombolo_i]=${!__tombolo_v@A}
		builtin declare -gx "${__tombolo[__tombolo_i]}"
	done
	return
fi
if [ "$1" = aside ]; then
	# Puts it aside, where the command did not change it.
	for ((__tombolo_i = 3; __tombolo_i < ${#__tombolo[@]}; __tombolo_i++)); do
		__tombolo_v=${__tombolo[__tombolo_i]%%=*}
		[ "$__tombolo_v=${!__tombolo_v-}" = "${__tombolo[__tombolo_i]}" ] || continue
		__tombolo_same+=("${__tombolo[__tombolo_i]}")
		builtin unset -v "$__tombolo_v"
		builtin eval "${__tombolo_hidden[__tombolo_i]}"
	done
	return
fi
if [ "$1" = trap ]; then
	# The command may put a trap of its own in the place of ours: then the state is kept where it leaves.
	__tombolo_exit=
	exit() {
		{ __tombolo_exit=$? && [ "$BASHPID" != "$$" ] || __tombolo_save; } >/dev/null 2>&1
		builtin exit "${@:-$__tombolo_exit}"
	}
	return
fi
case $1 in
less)
	for __tombolo_i in HOME LANG LC_ALL LOGNAME PATH SHELL USER; do
		case ${!__tombolo_i@a} in *x*) continue ;; esac
		builtin printf 'declare +x %s\n' "$__tombolo_i"
		[ -v "$__tombolo_i" ] || builtin printf 'unset -v %s\n' "$__tombolo_i"
	done
	;;
options)
	# Aliases come with the last step, as `set` does, and xtrace behind it: our `eval` is not to be seen.
	builtin printf '[ "$BASHOPTS" = %s ] || { eval "shopt -u ${BASHOPTS//:/ }"; shopt -s %s; }\n' \
		"$__tombolo_shopt" "${__tombolo_shopt//:/ }"
	# RETURN would come behind the last line.
	case :$__tombolo_set: in *:functrace:*) builtin trap - RETURN ;; esac
	local __tombolo_x=${__tombolo_set%:xtrace}
	[ "$__tombolo_x" = "$__tombolo_set" ] || builtin printf '__tombolo="\\builtin set -x;$__tombolo"\n'
	builtin printf '__tombolo_set="set +o ${SHELLOPTS//:/ +o } -o %s' "${__tombolo_x//:/ -o }"
	case :$__tombolo_shopt: in
	*:expand_aliases:*) builtin printf '; builtin shopt -s expand_aliases"\nshopt -u expand_aliases\n' ;;
	*) builtin printf '"\n' ;;
	esac
	;;
back)
	for __tombolo_i in extglob expand_aliases extdebug localvar_inherit; do
		case :$__tombolo_shopt: in *:"$__tombolo_i":*) builtin shopt -s "$__tombolo_i" ;; esac
	done
	;;
esac
