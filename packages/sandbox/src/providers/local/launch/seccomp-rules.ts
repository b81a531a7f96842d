import { allow, anySet, argument, equal, errno, greater, keepBits, type Line, label, load, returns } from "./bpf.ts";

const refusal: readonly Line[] = [label("refuse"), returns(errno.EPERM)];

const newNamespaceFlags = 0x7e020000;
const cloneNewTime = 0x80;

function refuseFlags(flags: number): Line[] {
  return [load(argument(0)), anySet(flags, "refuse"), returns(allow), ...refusal];
}

const family = { unix: 1, inet: 2, inet6: 10, netlink: 16 } as const;
const socketType = { stream: 1, datagram: 2, bits: 0xf } as const;
const protocol = { unset: 0, tcp: 6, udp: 17 } as const;

/** Unix sockets; TCP and UDP, but no protocol whose module the kernel would load; routes, which list the interfaces. */
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
  load(argument(2)),
  equal(protocol.unset, "allow"),
  returns(errno.EPROTONOSUPPORT),
  label("allow"),
  returns(allow),
];

const socketpairRules: readonly Line[] = [
  load(argument(0)),
  equal(family.unix, "allow"),
  returns(errno.EAFNOSUPPORT),
  label("allow"),
  returns(allow),
];

/**
 * Takes a disk's room at once, without writing, faster than anybody can watch. Programs write instead where a file system has
 * no such call. Only FALLOC_FL_PUNCH_HOLE gives room back.
 */
const fallocateRules: readonly Line[] = [
  load(argument(1)),
  anySet(0x02, "allow"),
  returns(errno.EOPNOTSUPP),
  label("allow"),
  returns(allow),
];

/**
 * TIOCSTI and TIOCLINUX put characters into a terminal's input. TIOCSETD, and the requests of bridges and VLANs, have the
 * kernel load a module for whoever asks. FS_IOC_RESVSP and its kin are fallocate.
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
const ioctlRules: readonly Line[] = [
  load(argument(1)),
  ...Object.values(refusedRequests).map((request) => equal(request, "refuse")),
  returns(allow),
  ...refusal,
];

/**
 * Options that load a module (TCP_ULP, UDP_ENCAP, the keys of TCP_AO), that a filter comes by, or that nobody but routers
 * and their like has a use for. TCP options from TCP_AO on are newer than this table.
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
  load(argument(2)),
  ...Object.values(refusedSocket).map((option) => equal(option, "refuse")),
  returns(allow),
  ...refusal,
];

/** Plain Linux, with random addresses or (for debuggers) without; and the question which it is. */
const personalityRules: readonly Line[] = [
  load(argument(0)),
  equal(0, "allow"),
  equal(0x0040000, "allow"),
  equal(0xffffffff, "allow"),
  returns(errno.EPERM),
  label("allow"),
  returns(allow),
];

/**
 * PR_SET_MM moves what /proc shows as a command line: to whoever lists processes on the host it can be gigabytes.
 * PR_SCHED_CORE keeps the other threads of a core from everybody else's programs.
 */
const prctlRules: readonly Line[] = [
  load(argument(0)),
  equal(35, "refuse"),
  equal(62, "refuse"),
  returns(allow),
  ...refusal,
];

/**
 * RLIMIT_CORE stays as the launcher set it: with 0 a crash would run the host's crash handler, as root. Programs that
 * turn their dumps off end when they can not, so the change is answered with success and not done.
 */
const rlimitCore = 4;
const setrlimitRules: readonly Line[] = [
  load(argument(0)),
  equal(rlimitCore, "keep"),
  returns(allow),
  label("keep"),
  returns(errno.none),
];

/** A process sets its own limits, by pid 0. Others run under its uid, too: pid 1 with no descriptor left would be deaf. */
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
  equal(rlimitCore, "keep"),
  returns(allow),
  label("keep"),
  returns(errno.none),
];

/**
 * Pid 1 keeps its share of the processors, by which it answers the host. Other numbers stay allowed: thread libraries name a
 * program's own threads by them.
 */
const scheduleRules: readonly Line[] = [load(argument(0)), equal(1, "refuse"), returns(allow), ...refusal];

/** Of one process or thread; groups and users include pid 1. */
function priorityRules(whichProcess: number): readonly Line[] {
  return [
    load(argument(0)),
    equal(whichProcess, "process"),
    returns(errno.EPERM),
    label("process"),
    load(argument(1)),
    equal(1, "refuse"),
    returns(allow),
    ...refusal,
  ];
}

/** Calls whose arguments decide. */
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
