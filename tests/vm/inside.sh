#!/bin/busybox sh
# inside.sh - the first process of the virtual machine: mounts, runs the tests, tells their results, switches the machine off.
# Each test ends with one line "VM ok NAME", "VM not ok NAME: WHY" or "VM skip NAME: WHY"; what it said stands before that line.
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

run() {
	name=$1
	shift
	[ -z "$ONLY" ] || [ "$ONLY" = "$name" ] || return
	timeout 120 "$@" </dev/null
	status=$?
	case $status in
	0) echo "VM ok $name" ;;
	77) echo "VM skip $name: it said so" ;;
	*) echo "VM not ok $name: status $status" ;;
	esac
}

# Not image_host: it asks for the programs that clients count on, and this is a small Debian.
for test in cgroup privilege seccomp instance quota; do
	[ -x "$build/tests/unit/unit-isolation-$test" ] && run "isolation_$test" "$build/tests/unit/unit-isolation-$test"
done
run contain_facts "$build/tests/contain/contain-facts" "$build/tests/contain/guest"
# Not exec, processes and terminals: they are full of times that an emulated processor cannot keep. The server below runs
# commands, too.
for test in files links; do
	run "agent_$test" "$build/tests/contain/agent/contain-agent-$test"
done
for test in "$build"/tests/contain/keeper/contain-keeper-*; do
	[ -f "$test" ] && run "keeper_${test##*contain-keeper-}" "$test"
done
python3 /vm/smoke.py "$build/tombolo"
echo "VM end"
sync
poweroff -f
