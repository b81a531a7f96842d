"""Runs a program on a terminal of 101 columns and 33 rows: terminal.py PROGRAM ARGUMENT...

Reads lines from standard input: each is typed when the text before its tab has been seen. Prints all that the program
put out, then one line of JSON: its exit code, and whether the terminal was given back as it was.
"""

import fcntl, json, os, pty, select, struct, sys, termios, time

main, child_end = pty.openpty()
fcntl.ioctl(child_end, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
before = termios.tcgetattr(child_end)
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(child_end, termios.TIOCSCTTY, 0)
    for fd in (0, 1, 2):
        os.dup2(child_end, fd)
    os.close(main)
    os.execv(sys.argv[1], sys.argv[1:])

steps = [line.rstrip("\n").split("\t") for line in sys.stdin if line.strip()]
seen, searched, status = b"", 0, None
deadline = time.time() + 280
while time.time() < deadline:
    ready, _, _ = select.select([main], [], [], 0.05)
    if ready:
        seen += os.read(main, 65536)
    elif status is not None:
        break
    if steps:
        at = seen.find(steps[0][0].encode(), searched)
        if at >= 0:
            searched = at + len(steps[0][0])
            action = steps.pop(0)[1]
            if action.startswith("resize "):
                cols, rows = map(int, action.split()[1:])
                fcntl.ioctl(child_end, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
            else:
                os.write(main, action.encode().decode("unicode_escape").encode())
    if status is None:
        done, raw = os.waitpid(pid, os.WNOHANG)
        if done:
            status = os.waitstatus_to_exitcode(raw)
if status is None:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
print("\n" + json.dumps({"code": status, "restored": termios.tcgetattr(child_end) == before, "left": len(steps)}))
