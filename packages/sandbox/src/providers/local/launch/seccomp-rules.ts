import { allow, anySet, argument, equal, errno, greater, keepBits, type Line, label, load, returns } from "./bpf.ts";

const refusal: readonly Line[] = [label("refuse"), returns(errno.EPERM)];

const newNamespaceFlags = 0x7e020000;
const cloneNewTime = 0x80;

/** Refuses these values of an argument. */
function refuseValues(index: number, values: readonly number[]): Line[] {
  return [load(argument(index)), ...values.map((value) => equal(value, "refuse")), returns(allow), ...refusal];
}

/** Allows only these values of an argument. */
function allowValues(index: number, values: readonly number[], otherwise: number): Line[] {
  const tests = values.map((value) => equal(value, "allow"));
  return [load(argument(index)), ...tests, returns(otherwise), label("allow"), returns(allow)];
}

function refuseFlags(flags: number): Line[] {
  return [load(argument(0)), anySet(flags, "refuse"), returns(allow), ...refusal];
}

const family = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const;
const socketType = { stream: 1, datagram: 2, bits: 0xf } as const;
const protocol = { unset: 0, tcp: 6, udp: 17 } as const;

/** Unix sockets; TCP and UDP, but no protocol that loads a kernel module; netlink routes, which list the interfaces. */
const socketRules: readonly Line[] = [
  load(argument(0)),
  equal(family.unix, "allow"),
  equal(family.inet, "internet"),
  equal(family.inet6, "internet"),
  equal(family.netlink, "netlink"),
  returns(errno.EAFNOSUPPORT),
  label("internet"),
  load(argument(1)),
  keepBits(socketType.bits),
  equal(socketType.stream, "stream"),
  equal(socketType.datagram, "datagram"),
  returns(errno.EPROTONOSUPPORT),
  label("stream"),
  load(argument(2)),
  equal(protocol.unset, "allow"),
  equal(protocol.tcp, "allow"),
  returns(errno.EPROTONOSUPPORT),
  label("datagram"),
  load(argument(2)),
  equal(protocol.unset, "allow"),
  equal(protocol.udp, "allow"),
  returns(errno.EPROTONOSUPPORT),
  label("netlink"),
  ...allowValues(2, [protocol.unset], errno.EPROTONOSUPPORT),
];

const socketpairRules = allowValues(0, [family.unix], errno.EAFNOSUPPORT);

/**
 * Takes disk space at once, without writing, faster than a watch can see. Programs write instead where the file system
 * lacks the call. FALLOC_FL_PUNCH_HOLE gives space back.
 */
const fallocateRules: readonly Line[] = [
  load(argument(1)),
  anySet(0x02, "allow"),
  returns(errno.EOPNOTSUPP),
  label("allow"),
  returns(allow),
];

/**
 * TIOCSTI and TIOCLINUX put characters into a terminal's input. TIOCSETD and the bridge and VLAN requests load kernel
 * modules for any user. FS_IOC_RESVSP and its like are fallocate.
 */
const refusedRequests = {
  TIOCSTI: 0x5412,
  TIOCLINUX: 0x541c,
  TIOCSETD: 0x5423,
  SIOCGIFBR: 0x8940,
  SIOCSIFBR: 0x8941,
  SIOCBRADDBR: 0x89a0,
  SIOCBRDELBR: 0x89a1,
  SIOCGIFVLAN: 0x8982,
  SIOCSIFVLAN: 0x8983,
  FS_IOC_RESVSP: 0x40305828,
  FS_IOC_RESVSP64: 0x4030582a,
  FS_IOC_ZERO_RANGE: 0x40305839,
} as const;
const ioctlRules = refuseValues(1, Object.values(refusedRequests));

/**
 * Options that load a module (TCP_ULP, UDP_ENCAP, the keys of TCP_AO), that attach a filter, or that only routers and
 * the like use. TCP options from TCP_AO on are newer than this table.
 */
const level = { socket: 1, tcp: 6, udp: 17 } as const;
const refusedTcp = { TCP_MD5SIG: 14, TCP_REPAIR: 19, TCP_ULP: 31, TCP_MD5SIG_EXT: 32 } as const;
const newestTcp = 37;
const refusedUdp = { UDP_ENCAP: 100 } as const;
const refusedSocket = { ATTACH_FILTER: 26, ATTACH_BPF: 50, REUSEPORT_CBPF: 51, REUSEPORT_EBPF: 52 } as const;
const setsockoptRules: readonly Line[] = [
  load(argument(1)),
  equal(level.tcp, "tcp"),
  equal(level.udp, "udp"),
  equal(level.socket, "socket"),
  returns(allow),
  label("tcp"),
  load(argument(2)),
  greater(newestTcp, "refuse"),
  ...Object.values(refusedTcp).map((option) => equal(option, "refuse")),
  returns(allow),
  label("udp"),
  load(argument(2)),
  ...Object.values(refusedUdp).map((option) => equal(option, "refuse")),
  returns(allow),
  label("socket"),
  ...refuseValues(2, Object.values(refusedSocket)),
];

/** Plain Linux, with address randomization or, for debuggers, without; and the query. */
const personalityRules = allowValues(0, [0, 0x0040000, 0xffffffff], errno.EPERM);

/**
 * PR_SET_MM moves what /proc shows as the command line: gigabytes for whoever lists processes on the host.
 * PR_SCHED_CORE keeps the sibling threads of a core from everyone else.
 */
const prctlRules = refuseValues(0, [35, 62]);

/**
 * RLIMIT_CORE stays as the launcher set it: with 0, a crash runs the host's crash handler as root. Programs that turn
 * their dumps off exit when they cannot, so the call succeeds without effect.
 */
const rlimitCore = 4;
const keepCore: readonly Line[] = [equal(rlimitCore, "keep"), returns(allow), label("keep"), returns(errno.none)];
const setrlimitRules: readonly Line[] = [load(argument(0)), ...keepCore];

/** A process may set its own limits only, by pid 0. Pid 1 has the same uid, and without descriptors would be deaf. */
const prlimitRules: readonly Line[] = [
  load(argument(2)),
  anySet(0xffffffff, "set"),
  load(argument(2) + 4),
  anySet(0xffffffff, "set"),
  returns(allow),
  label("set"),
  load(argument(0)),
  equal(0, "own"),
  ...refusal,
  label("own"),
  load(argument(1)),
  ...keepCore,
];

/**
 * Protects pid 1's share of the processors, which it needs to answer the host. Other numbers stay allowed: thread
 * libraries name a program's own threads by them.
 */
const scheduleRules = refuseValues(0, [1]);

/** Allows one process or thread other than pid 1; groups and users include pid 1. */
function priorityRules(whichProcess: number): readonly Line[] {
  return [
    load(argument(0)),
    equal(whichProcess, "process"),
    returns(errno.EPERM),
    label("process"),
    ...refuseValues(1, [1]),
  ];
}

/** Root, the second user, and "leave it". */
const twoUsers = [0, 1000, 0xffffffff];

/** The kernel judges changes between the two users. Others succeed without effect: package installers make many. */
function ownerRules(uidAt: number): readonly Line[] {
  return [
    load(argument(uidAt)),
    ...twoUsers.map((uid) => equal(uid, "group")),
    returns(errno.none),
    label("group"),
    ...allowValues(uidAt + 1, twoUsers, errno.none),
  ];
}

/** Calls that change owners, in a sandbox with two users. Groups can only be dropped. */
export const ownershipOfTwo = {
  chown: ownerRules(1),
  lchown: ownerRules(1),
  fchown: ownerRules(1),
  fchownat: ownerRules(2),
  setgroups: allowValues(0, [0], errno.none),
} as const;

/** Calls that are judged by their arguments. */
export const inspected = {
  socket: socketRules,
  socketpair: socketpairRules,
  setsockopt: setsockoptRules,
  clone: refuseFlags(newNamespaceFlags),
  unshare: refuseFlags(newNamespaceFlags | cloneNewTime),
  fallocate: fallocateRules,
  ioctl: ioctlRules,
  personality: personalityRules,
  prctl: prctlRules,
  setrlimit: setrlimitRules,
  prlimit64: prlimitRules,
  sched_setaffinity: scheduleRules,
  sched_setattr: scheduleRules,
  sched_setparam: scheduleRules,
  sched_setscheduler: scheduleRules,
  setpriority: priorityRules(0),
  ioprio_set: priorityRules(1),
} as const;
