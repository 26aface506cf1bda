/*
 * parked.h - a sandbox that is nobody yet: a fresh clone of the zygote, waiting on its bond for `bind`. Then
 * it puts the agent's parts together and runs them.
 *
 * The room's inner order, which tests/unit/floors.py and calls.py check: each file includes and calls only
 * what stands on lines below its own.
 *
 *   zygote
 *   parked                      from clone to pid 1
 *   exec, terminal, archive, process_signal, session_open, file
 *   follow                      all of these: the channels of a front, one kind a file
 *   starting, report            how they begin and what they tell
 *   grant                       the cgroups come and go
 *   rehearsal
 *   launch                      from what was asked for to a process
 *   keeping                     who of the ended ones is kept
 *   process                     one in its life
 *   pipes                       its bytes
 *   processes                   all of them, and what is known of each
 *   cause, spawn, session       how one ended, how one starts, what commands leave to the next
 *   tree, view                  what lives below a command; the machine as the inside sees it
 *   limits, peers, command, input
 *   reactor, log, environment, pty, file_place
 *
 * The last two lines know of no process. What has to go up is an event that the upper file armed: the kinds
 * and bond_events of peers.h, trees_init(), the callbacks of clients, followers and waiters.
 */
#pragma once

/* Takes BOND_FD. Becomes pid 1 of a sandbox, or ends when the keeper hangs up first. */
_Noreturn void parked_run(int bond_fd);
