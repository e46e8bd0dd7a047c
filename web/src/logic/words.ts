/** Explanations of the quantities that the pages show, for tooltips and for the list at the end of each page. */
export const WORDS = {
  utilization:
    'Mean load of a link as a share of its capacity. The mean follows the reported windows slowly, so that a short peak does not decide a placement.',
  hot: 'A link is hot while each of its last windows is above the limit. The mean follows more slowly: a link may be hot at a mean below the limit, and a mean above the limit may belong to a link that is cool again.',
  hotFor: 'Time since which every window of the link was above the limit.',
  lastHour:
    'Mean load of the link over the last hour. The dashed line is the limit; gaps are times without telemetry.',
  peak: 'Highest step of the last hour; a step is the mean of 30 s.',
  heaviest:
    'Tasks that Leeward placed and that send the most over the link, by their last reported rate; then transfers of blocks, which use the rate that they get.',
  notLeeward:
    'Part of the measured load beyond the rates of all tasks that the service knows: traffic of other programs, transfers of blocks, and errors of the rates.',
  moves:
    'Moves of tasks off the link that the service advised, by state; or the reason for which it advises none.',
  effect:
    'Load of the link in the minute before the advice, and from one to six minutes after it. Other work also comes and goes in this time.',
  linksHot:
    'Share of the time with telemetry in which a link of a rack was hot, averaged over all links, in the time span of the map. Next to it: for how much of this time a link has telemetry on average.',
  samples: 'Reports of the load of one link or device that the service accepted, per second.',
  telemetryAge: 'Age of the newest window of any link that the service accepted.',
  unseen:
    'A link is not seen without a recent report. Its load counts as unknown, so best-effort work avoids it.',
  decisionsRate: 'Decisions per second, over the last 20 s or four reporting intervals.',
  limiting:
    'The bottleneck that the policy saw: the link or device with the least remaining rate on the chosen paths.',
  residual:
    'Rate that best-effort work may still use: the usable capacity without measured and pending load. Reserved rates are not subtracted.',
  pending:
    'Load that is placed but not in telemetry yet. A negative value is load that ended but is still in telemetry.',
  reserved: 'Rate that workloads with an SLO have reserved.',
  measured: 'Mean load by telemetry.',
  capacity: 'Rate that the service believes the link can carry.',
  mode: 'Who decides: on (Leeward), off (the default policy), shadow (the default policy; Leeward’s choice is recorded beside it), or a canary (Leeward decides a share).',
  comparison:
    'Both policies choose on the same view of the network. Better: Leeward’s choice crosses fewer hot links, or as many and its fullest link is less loaded. Not known: a crossed link has no telemetry, or the decision is a guarantee (workload, volumes), for which only the two answers are compared.',
  fullest:
    'The fullest link that the traffic of the choice crosses, with the streams of the request included.',
  hotCrossed: 'Number of hot links that the traffic of the choice crosses.',
  slowest: 'Rate of the slowest transfer of the choice.',
  lag: 'Age of the state that reads are served from. It is at most about a second, and grows if the service cannot keep up.',
  transaction:
    'Time that the last transaction of the store took. A decision is answered after its transaction.',
  silent: 'Hosts that are up and reported before, and whose last report is too old.',
  absent:
    'Hosts that are down, and hosts that have not reported since they came up or since the service began to lead.',
  connections: 'Open connections of the main listener. Each agent keeps one.',
  hotLinkHours:
    'Sum over links of the time above the limit for hot links: two links that are hot for half an hour are one link-hour. Measured: by telemetry. The two estimates are for the case that Leeward, or the default policy, had made all compared decisions.',
  blind: 'Decisions of Leeward’s policy without any telemetry.',
  fallback:
    'Decisions that Leeward’s policy left to the default policy, such as blocks below the threshold of `sinbad`.',
  virtualTime:
    'Time in the lab since its begin. It runs slower than real time by the dilation, so that one machine carries the rates of a datacenter.',
  dilation: 'Real seconds for each second of virtual time.',
  lateness:
    'Lateness of 99 % of the packets since the view before, in virtual time: the time from the moment at which the switch should deliver a packet until the lab did.',
  droppedPackets:
    'Packets that the switch has dropped because their queue was full: in all, and since the view before.',
  circuitsUp:
    'Circuits between racks at the moment of the view; a schedule changes them many times between two views.',
  occupancy:
    'Packets in the queue from one rack to another, as a share of its capacity. A frame, or a dot in a small cell, is a circuit that is up.',
  labRates:
    'Rate at which a rack sends to other racks, in virtual time, between the last two views: through the packet switch, and by circuits.',
  promise: 'Upper bound on the latency of a request, from the reserved rates on its path.',
  enforced:
    'Places of the path where an enforcer has applied the priorities and limits of the promise: the network of the client, the server, and its network. A place without an enforcer is shown, and is no error.',
  burn: 'Share of requests of the last hour that were later than the SLO, relative to the share that its percentile permits. At 1, exactly what is permitted is used up.',
  measuredLatency:
    'Latency at the percentile of the SLO. That at the server is without the network, so it may be below the SLO while that of the client is not.',
  usedUp:
    'Late requests, and those that the percentile of the SLO permits of all requests that enforcers have counted. A new leader counts again.',
  promiseVersion:
    'Version of the promises that the enforcer has applied, of the one that it should apply. The version counts changes of all promises.',
} as const

export type Word = keyof typeof WORDS
