# Asks the proxy for each `kind target` that is named: connect, get, socks4 (an IPv4 address), socks6, socksname, direct, udp.
import socket, struct, sys

def proxy(path="127.0.0.1"):
    if path.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(60)
        s.connect(path)
        return s
    return socket.create_connection((path, 3128), 60)

def line(s):
    return s.recv(4096).split(b"\r\n")[0].decode("latin1") or "closed"

def split(target):
    host, _, port = target.rpartition(":")
    return host, int(port)

def connect(target):
    with proxy() as s:
        s.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target.encode(), target.encode()))
        return line(s)

def raw(target):
    with proxy("/run/slipway/egress.sock") as s:
        s.sendall(b"CONNECT %s HTTP/1.1\r\nHost: allowed.test\r\n\r\n" % target.encode())
        return line(s)

def get(target):
    with proxy() as s:
        s.sendall(b"GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (target.encode(), target.split("/")[2].encode()))
        return line(s)

def socks(target, address):
    host, port = split(target)
    with proxy() as s:
        s.sendall(b"\x05\x01\x00")
        if s.recv(2) != b"\x05\x00":
            return "closed"
        s.sendall(b"\x05\x01\x00" + address(host) + struct.pack(">H", port))
        answer = s.recv(10)
        return "socks %d" % answer[1] if len(answer) > 1 else "closed"

def socks4(target):
    return socks(target, lambda host: b"\x01" + socket.inet_aton(host))

def socks6(target):
    return socks(target, lambda host: b"\x04" + socket.inet_pton(socket.AF_INET6, host))

def socksname(target):
    return socks(target, lambda host: b"\x03" + bytes([len(host)]) + host.encode())

def direct(target):
    socket.create_connection(split(target), 5)
    return "reached"

def udp(target):
    host, port = split(target)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", (host, port))
    return "sent"

def resolve(target):
    return socket.getaddrinfo(target, 80)[0][4][0]

for wanted in sys.argv[1:]:
    kind, target = wanted.split(" ", 1)
    try:
        answer = globals()[kind](target)
    except OSError as error:
        answer = type(error).__name__
    print("%s: %s" % (wanted, answer), flush=True)
