#!/bin/busybox sh
# shellcheck shell=dash
# inside.sh - the first process of the virtual machine: mounts, runs the tests, tells their results, switches the machine off.
# Each test ends with one line "VM ok NAME", "VM not ok NAME: WHY" or "VM skip NAME: WHY"; what it said stands before that
# line, when it did not pass. There are two processors, so there are two lanes, and then the server has the machine for itself.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:/vm/busybox HOME=/root
build=$(cat /vm/build)
mkdir -p /vm/busybox
busybox --install -s /vm/busybox
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t cgroup2 -o nsdelegate cgroup /sys/fs/cgroup
ifconfig lo 127.0.0.1 up
exec 2>&1

ONLY=$(cat /vm/only)
export ONLY

# wanted GLOB: no test was named, or one that matches.
wanted() {
	[ -n "$ONLY" ] || return 0
	for name in $ONLY; do
		# shellcheck disable=SC2254
		case $name in $1) return 0 ;; esac
	done
	return 1
}

run() {
	name=$1
	shift
	wanted "$name" || return
	timeout -k 5 300 "$@" </dev/null >"/vm/$name.log" 2>&1
	status=$?
	# One lane speaks at a time.
	{
		flock 9
		case $status in
		0) echo "VM ok $name" ;;
		77) cat "/vm/$name.log" && echo "VM skip $name: it said so" ;;
		*) cat "/vm/$name.log" && echo "VM not ok $name: status $status" ;;
		esac
	} 9>/vm/lock
}

agent_lane() {
	for test in exec files links processes terminals; do
		run "agent_$test" "$build/tests/contain/agent/contain-agent-$test"
	done
}

other_lane() {
	for test in cgroup image_host instance privilege quota seccomp; do
		run "isolation_$test" "$build/tests/unit/unit-isolation-$test"
	done
	run contain_facts "$build/tests/contain/contain-facts" "$build/tests/contain/guest"
	for test in ahead link survive; do
		run "keeper_$test" "$build/tests/contain/keeper/contain-keeper-$test"
	done
}

agent_lane &
other_lane
wait
if wanted "server_*"; then
	timeout -k 5 300 python3 /vm/smoke.py "$build/tombolo"
fi
echo "VM end"
sync
poweroff -f
