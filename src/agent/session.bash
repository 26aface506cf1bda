# session.bash - what runs around each command of a session; session.c starts it, session.h tells the theory.
#
#     bash -c BOOT ARG0
#
# Descriptors: 60 is this text; 61 the session's state, or nothing; 62 holds texts that end with NULs: the
# command line, where a session without a state begins, the directory given with this command ("" for none),
# and the variables given with it (NAME=value); 63 takes the new state. A state is a program that bash itself
# wrote: __tombolo_state below.
#
# The build drops comments and indentation. What is called __tombolo... is ours and is never kept. No line may
# cost a fork.

exec 60<&-
mapfile -d '' -t __tombolo <&62
exec 62<&-
BASH_EXECUTION_STRING=${__tombolo[0]}

# While a descriptor is redirected bash saves it as 10, closed in children. A copy of that is closed in them,
# too.
{ exec 64>&10; } 63>&-
exec 63>&-

__tombolo_cd() {
	builtin cd -- "$1" || builtin cd -- ~ || builtin cd /
	if [ $# -gt 1 ]; then OLDPWD=$2; else builtin unset -v OLDPWD; fi
}

# The last step before the command: applies what was given with it, and remembers what that hides.
__tombolo_given() {
	local __tombolo_i __tombolo_v
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
	builtin trap '{ __tombolo_save; } 2>/dev/null' EXIT
	case $BASH_EXECUTION_STRING in
	*trap*)
		# The command may put a trap of its own in the place of ours: then it is kept where it leaves.
		__tombolo_exit=
		exit() {
			__tombolo_exit=$?
			[ "$BASHPID" != "$$" ] || { __tombolo_save; } 2>/dev/null
			builtin exit "${@:-$__tombolo_exit}"
		}
		;;
	esac
}

# Prints every variable but ours and those that mean nothing to another bash. The names pass through the new
# state, as comments: there is no other place for them that is not a fork away.
__tombolo_variables() {
	local -a __tombolo_v || return
	local __tombolo_not='BASH|BASHOPTS|BASHPID|BASH_@(A*|CMDS|COMMAND|EXECUTION_STRING|L*|MONOSECONDS|S*)'
	__tombolo_not+='|BASH_@(TRAPSIG|VERS*)|COMP_WORDBREAKS|DIRSTACK|EPOCH@(REALTIME|SECONDS)|EUID|FUNCNAME'
	__tombolo_not+='|GROUPS|HISTCMD|HOSTTYPE|LINENO|MACHTYPE|OLDPWD|OSTYPE|PIPESTATUS|PPID|PWD|RANDOM|SECONDS'
	__tombolo_not+='|SHELLOPTS|SRANDOM|UID|_'
	builtin shopt -s extglob
	builtin compgen -v -P '#' -X "@(__tombolo*|$__tombolo_not)" >&64
	mapfile -t __tombolo_v </dev/fd/64
	builtin declare -p "${__tombolo_v[@]#?}"
}

# The same with what was given put aside, where the command did not change it.
__tombolo_own_variables() {
	local -a __tombolo_same && local __tombolo_i __tombolo_v || return
	for ((__tombolo_i = 3; __tombolo_i < ${#__tombolo[@]}; __tombolo_i++)); do
		__tombolo_v=${__tombolo[__tombolo_i]%%=*}
		[ "$__tombolo_v=${!__tombolo_v-}" = "${__tombolo[__tombolo_i]}" ] || continue
		__tombolo_same+=("${__tombolo[__tombolo_i]}")
		builtin unset -v "$__tombolo_v"
		eval "${__tombolo_hidden[__tombolo_i]}"
	done
	__tombolo_variables || return
	for __tombolo_v in "${__tombolo_same[@]}"; do
		builtin declare -gx "$__tombolo_v"
	done
}

# Without its last line it counts for nothing: so it is when somebody made names of ours read-only.
__tombolo_state() {
	local __tombolo_v && __tombolo_own_variables || return
	builtin printf '[ "$BASHOPTS" = %s ] || { shopt -u ${BASHOPTS//:/ }; shopt -s %s; }\n' \
		"$__tombolo_shopt" "${__tombolo_shopt//:/ }"
	for __tombolo_v in HOME LANG LC_ALL LOGNAME PATH SHELL USER; do
		[ -v "$__tombolo_v" ] || builtin printf 'unset -v %s\n' "$__tombolo_v"
	done
	if [ "$PWD" != "${__tombolo[2]}" ]; then __tombolo_pwd=("$PWD" ${OLDPWD+"$OLDPWD"}); fi
	builtin printf '__tombolo_cd'
	builtin printf ' %s' "${__tombolo_pwd[@]@Q}"
	builtin unset -f __tombolo_cd __tombolo_given __tombolo_variables __tombolo_own_variables \
		__tombolo_state __tombolo_save ${__tombolo_exit+"exit"}
	builtin printf '\n'
	builtin declare -f
	builtin declare -F
	builtin alias -p
	builtin umask -p
	builtin printf 'exec 61<&-\n__tombolo_given\nset -o %s\n#kept\n' "${__tombolo_set//:/ -o }"
}

# At the end of the command line (then with its status), at `exit`, or in the trap, whichever comes first.
__tombolo_save() {
	__tombolo_status=${1-}
	local __tombolo_set=$SHELLOPTS __tombolo_shopt=$BASHOPTS -
	set +efnuvx +o posix
	builtin shopt -u localvar_inherit
	builtin trap '' XFSZ
	__tombolo_state >&64
	# As it was: the command's own EXIT trap may follow.
	builtin shopt -u extglob
	case :$__tombolo_shopt: in *:extglob:*) builtin shopt -s extglob ;; esac
	case :$__tombolo_shopt: in *:localvar_inherit:*) builtin shopt -s localvar_inherit ;; esac
	__tombolo_save() { __tombolo_status=${1-}; }
}

if [ -e /dev/fd/61 ]; then
	# What a new bash is born with, before the state says otherwise; its options come last.
	set +o ${SHELLOPTS//:/ +o }
	declare +x HOME LANG LC_ALL LOGNAME PATH SHELL USER
	. /dev/fd/61 >/dev/null 2>&1
else
	{
		__tombolo_cd "${__tombolo[1]}"
		__tombolo_given
	} 2>/dev/null
fi
