import { describe, expect, test } from "vitest";
import { type Arch, type SeccompProfile, seccompFilter } from "./seccomp.ts";

const auditArch = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
const allowed = "allow";

/** Runs the filter as the kernel would: a BPF machine with the instructions that the kernel's checker lets pass. */
function decide(filter: Uint8Array, call: { arch: number; nr: number; args?: readonly number[] }): string {
  const code = new DataView(filter.buffer);
  const data = new DataView(new ArrayBuffer(64));
  data.setUint32(0, call.nr, true);
  data.setUint32(4, call.arch, true);
  (call.args ?? []).forEach((value, index) => {
    data.setBigUint64(16 + 8 * index, BigInt.asUintN(64, BigInt(value)), true);
  });
  let accumulator = 0;
  for (let pc = 0; pc < filter.length / 8; pc++) {
    const operand = code.getUint32(pc * 8 + 4, true);
    const jump = (taken: boolean) => {
      pc += code.getUint8(pc * 8 + (taken ? 2 : 3));
    };
    switch (code.getUint16(pc * 8, true)) {
      case 0x20:
        accumulator = data.getUint32(operand, true);
        break;
      case 0x54:
        accumulator = (accumulator & operand) >>> 0;
        break;
      case 0x15:
        jump(accumulator === operand);
        break;
      case 0x25:
        jump(accumulator > operand);
        break;
      case 0x45:
        jump((accumulator & operand) !== 0);
        break;
      case 0x06:
        return answer(operand);
      default:
        throw new Error(`unknown instruction at ${pc}`);
    }
  }
  throw new Error("the filter has no end");
}

function answer(action: number): string {
  if (action === 0x7fff0000) return allowed;
  if (action === 0x80000000) return "kill";
  const names: Record<number, string> = {
    0: "0",
    1: "EPERM",
    38: "ENOSYS",
    93: "EPROTONOSUPPORT",
    95: "EOPNOTSUPP",
    97: "EAFNOSUPPORT",
  };
  return names[action & 0xffff] ?? `errno ${action & 0xffff}`;
}

const numbers = {
  x64: {
    read: 0,
    openat: 257,
    execve: 59,
    ptrace: 101,
    mount: 165,
    bpf: 321,
    keyctl: 250,
    io_uring_setup: 425,
    setns: 308,
  },
  arm64: {
    read: 63,
    openat: 56,
    execve: 221,
    ptrace: 117,
    mount: 40,
    bpf: 280,
    keyctl: 219,
    io_uring_setup: 425,
    setns: 268,
  },
} as const;
const inspected = {
  x64: {
    socket: 41,
    socketpair: 53,
    clone: 56,
    unshare: 272,
    fallocate: 285,
    ioctl: 16,
    personality: 135,
    prctl: 157,
    setrlimit: 160,
    prlimit64: 302,
    fchown: 93,
    fchownat: 260,
    setgroups: 116,
    setsockopt: 54,
    sched_setaffinity: 203,
    sched_setattr: 314,
    sched_setparam: 142,
    sched_setscheduler: 144,
    setpriority: 141,
    ioprio_set: 251,
  },
  arm64: {
    socket: 198,
    socketpair: 199,
    clone: 220,
    unshare: 97,
    fallocate: 47,
    ioctl: 29,
    personality: 92,
    prctl: 167,
    setrlimit: 164,
    prlimit64: 261,
    fchown: 55,
    fchownat: 54,
    setgroups: 159,
    setsockopt: 208,
    sched_setaffinity: 122,
    sched_setattr: 274,
    sched_setparam: 118,
    sched_setscheduler: 119,
    setpriority: 140,
    ioprio_set: 30,
  },
} as const;

describe.each(["x64", "arm64"] as const)("on %s", (arch: Arch) => {
  const ask = (nr: number, args: readonly number[] = [], profile: SeccompProfile = "user") =>
    decide(seccompFilter(profile, arch), { arch: auditArch[arch], nr, args });
  const nr = inspected[arch];

  test.each(["read", "openat", "execve", "ptrace"] as const)("%s is allowed", (name) => {
    expect(ask(numbers[arch][name])).toBe(allowed);
  });

  test.each(["mount", "bpf", "keyctl", "io_uring_setup", "setns"] as const)("%s is refused", (name) => {
    expect(ask(numbers[arch][name])).toBe("EPERM");
    expect(ask(numbers[arch][name], [], "root")).toBe("EPERM");
  });

  test.each([
    ["a unix socket", [1, 1, 0], allowed],
    ["TCP", [2, 1, 6], allowed],
    ["TCP without blocking", [10, 1 | 0o4000, 0], allowed],
    ["UDP", [2, 2, 17], allowed],
    ["routes", [16, 3, 0], allowed],
    ["netlink of another kind", [16, 3, 12], "EPROTONOSUPPORT"],
    ["a raw socket", [2, 3, 1], "EPROTONOSUPPORT"],
    ["MPTCP", [2, 1, 262], "EPROTONOSUPPORT"],
    ["SCTP", [2, 5, 132], "EPROTONOSUPPORT"],
    ["UDP-Lite", [2, 2, 136], "EPROTONOSUPPORT"],
    ["vsock", [40, 1, 0], "EAFNOSUPPORT"],
    ["a packet socket", [17, 3, 0], "EAFNOSUPPORT"],
    ["the kernel's crypto", [38, 5, 0], "EAFNOSUPPORT"],
    ["vsock behind upper bits", [2 ** 32 + 40, 1, 0], "EAFNOSUPPORT"],
  ])("socket: %s", (_, args, expected) => {
    expect(ask(nr.socket, args)).toBe(expected);
  });

  test("socketpair makes unix sockets only", () => {
    expect(ask(nr.socketpair, [1, 1, 0])).toBe(allowed);
    expect(ask(nr.socketpair, [30, 1, 0])).toBe("EAFNOSUPPORT");
  });

  test.each([0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])(
    "no namespace comes by flag %i",
    (flag) => {
      expect(ask(nr.clone, [flag | 17])).toBe("EPERM");
      expect(ask(nr.unshare, [flag])).toBe("EPERM");
    },
  );

  test("threads, forks and a time namespace", () => {
    expect(ask(nr.clone, [0x003d0f00])).toBe(allowed);
    expect(ask(nr.clone, [17 | 0x80])).toBe(allowed);
    expect(ask(nr.unshare, [0x400])).toBe(allowed);
    expect(ask(nr.unshare, [0x80])).toBe("EPERM");
    expect(ask(435)).toBe("ENOSYS");
  });

  test("a terminal's input takes nothing from programs", () => {
    expect(ask(nr.ioctl, [0, 0x5412])).toBe("EPERM");
    expect(ask(nr.ioctl, [0, 0x541c])).toBe("EPERM");
    expect(ask(nr.ioctl, [0, 2 ** 32 + 0x5412])).toBe("EPERM");
    expect(ask(nr.ioctl, [0, 0x5413])).toBe(allowed);
  });

  test.each([
    ["TIOCSETD", 0x5423],
    ["SIOCGIFBR", 0x8940],
    ["SIOCSIFBR", 0x8941],
    ["SIOCBRADDBR", 0x89a0],
    ["SIOCBRDELBR", 0x89a1],
    ["SIOCGIFVLAN", 0x8982],
    ["SIOCSIFVLAN", 0x8983],
  ])("%s, for which the kernel would load a module, is refused", (_, request) => {
    expect(ask(nr.ioctl, [0, request])).toBe("EPERM");
    expect(ask(nr.ioctl, [0, 2 ** 32 + request])).toBe("EPERM");
    expect(ask(nr.ioctl, [0, request], "root")).toBe("EPERM");
  });

  test.each([
    ["TCP_NODELAY", [0, 6, 1], allowed],
    ["TCP_KEEPIDLE", [0, 6, 4], allowed],
    ["TCP_CONGESTION", [0, 6, 13], allowed],
    ["TCP_FASTOPEN", [0, 6, 23], allowed],
    ["TCP_TX_DELAY", [0, 6, 37], allowed],
    ["TCP_MD5SIG", [0, 6, 14], "EPERM"],
    ["TCP_REPAIR", [0, 6, 19], "EPERM"],
    ["TCP_ULP", [0, 6, 31], "EPERM"],
    ["TCP_ULP behind upper bits", [0, 2 ** 32 + 6, 2 ** 32 + 31], "EPERM"],
    ["TCP_MD5SIG_EXT", [0, 6, 32], "EPERM"],
    ["TCP_AO_ADD_KEY", [0, 6, 38], "EPERM"],
    ["a TCP option below zero", [0, 6, -1], "EPERM"],
    ["UDP_CORK", [0, 17, 1], allowed],
    ["UDP_ENCAP", [0, 17, 100], "EPERM"],
    ["UDP_SEGMENT", [0, 17, 103], allowed],
    ["SO_REUSEADDR", [0, 1, 2], allowed],
    ["SO_ATTACH_FILTER", [0, 1, 26], "EPERM"],
    ["SO_ATTACH_BPF", [0, 1, 50], "EPERM"],
    ["SO_ATTACH_REUSEPORT_CBPF", [0, 1, 51], "EPERM"],
    ["SO_ATTACH_REUSEPORT_EBPF", [0, 1, 52], "EPERM"],
    ["IPV6_V6ONLY", [0, 41, 26], allowed],
  ])("setsockopt: %s", (_, args, expected) => {
    expect(ask(nr.setsockopt, args)).toBe(expected);
    expect(ask(nr.setsockopt, args, "root")).toBe(expected);
  });

  test("a disk's room is given back, not taken ahead", () => {
    for (const mode of [0, 0x01, 0x10, 0x40]) expect(ask(nr.fallocate, [3, mode])).toBe("EOPNOTSUPP");
    expect(ask(nr.fallocate, [3, 0x03])).toBe(allowed);
    for (const number of [0x40305828, 0x4030582a, 0x40305839]) expect(ask(nr.ioctl, [3, number])).toBe("EPERM");
  });

  test("personality can be asked, and set for debuggers", () => {
    for (const value of [0, 0x40000, 0xffffffff]) expect(ask(nr.personality, [value])).toBe(allowed);
    expect(ask(nr.personality, [0x400000])).toBe("EPERM");
  });

  test("the core limit can be asked for, and is not changed", () => {
    expect(ask(nr.setrlimit, [4, 1])).toBe("0");
    expect(ask(nr.setrlimit, [7, 1])).toBe(allowed);
    expect(ask(nr.prlimit64, [0, 4, 0, 1])).toBe(allowed);
    expect(ask(nr.prlimit64, [0, 4, 1, 0])).toBe("0");
    expect(ask(nr.prlimit64, [0, 4, 2 ** 32, 0])).toBe("0");
    expect(ask(nr.prlimit64, [0, 7, 1, 0])).toBe(allowed);
  });

  test.each([7, 4, 6])("limit %i of another process can be asked for, and is not changed", (resource) => {
    for (const pid of [1, 2, 2 ** 32 + 1, -1]) {
      expect(ask(nr.prlimit64, [pid, resource, 1, 0])).toBe("EPERM");
      expect(ask(nr.prlimit64, [pid, resource, 2 ** 32, 0])).toBe("EPERM");
      expect(ask(nr.prlimit64, [pid, resource, 0, 1])).toBe(allowed);
    }
    expect(ask(nr.prlimit64, [2 ** 32, 7, 1, 0])).toBe(allowed);
  });

  test.each(["sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"] as const)(
    "%s is for all but pid 1",
    (name) => {
      for (const pid of [0, 2, 4242]) expect(ask(nr[name], [pid])).toBe(allowed);
      for (const pid of [1, 2 ** 32 + 1]) expect(ask(nr[name], [pid])).toBe("EPERM");
    },
  );

  test.each([
    ["setpriority", 0],
    ["ioprio_set", 1],
  ] as const)("%s is for single processes, and not for pid 1", (name, ofProcess) => {
    for (const pid of [0, 2, 4242]) expect(ask(nr[name], [ofProcess, pid])).toBe(allowed);
    for (const pid of [1, 2 ** 32 + 1]) expect(ask(nr[name], [ofProcess, pid])).toBe("EPERM");
    for (const many of [ofProcess + 1, ofProcess + 2]) expect(ask(nr[name], [many, 0])).toBe("EPERM");
  });

  test("a process does not move its command line, and shares its core", () => {
    expect(ask(nr.prctl, [35, 14])).toBe("EPERM");
    expect(ask(nr.prctl, [62, 1])).toBe("EPERM");
    expect(ask(nr.prctl, [15])).toBe(allowed);
  });

  test("changes of owner are answered with success for root only", () => {
    expect(ask(nr.fchownat)).toBe(allowed);
    expect(ask(nr.fchownat, [], "root")).toBe("0");
    expect(ask(nr.setgroups, [], "root")).toBe("0");
  });

  test.each([
    [0, 0, allowed],
    [1000, 1000, allowed],
    [0, 1000, allowed],
    [-1, 0, allowed],
    [1000, 0xffffffff, allowed],
    [2 ** 32 + 1000, 0, allowed],
    [33, 33, "0"],
    [0, 8, "0"],
    [8, 0, "0"],
    [1001, 1000, "0"],
  ])("with two users, a change of owner to %i:%i is theirs or only answered", (uid, gid, expected) => {
    expect(ask(nr.fchown, [3, uid, gid], "two-users")).toBe(expected);
    expect(ask(nr.fchownat, [3, 0, uid, gid, 0], "two-users")).toBe(expected);
  });

  test("with two users, groups can be dropped, and others are only answered", () => {
    expect(ask(nr.setgroups, [0, 0], "two-users")).toBe(allowed);
    expect(ask(nr.setgroups, [1, 0], "two-users")).toBe("0");
    expect(ask(numbers[arch].mount, [], "two-users")).toBe("EPERM");
  });

  test("calls newer than the table do not exist", () => {
    expect(ask(466)).toBe(allowed);
    expect(ask(467)).toBe("ENOSYS");
    expect(ask(0x40000000)).toBe("ENOSYS");
  });

  test("another architecture's call kills", () => {
    const other = arch === "x64" ? auditArch.arm64 : auditArch.x64;
    expect(decide(seccompFilter("user", arch), { arch: other, nr: 0 })).toBe("kill");
    expect(decide(seccompFilter("user", arch), { arch: 0x40000003, nr: 0 })).toBe("kill");
  });
});
