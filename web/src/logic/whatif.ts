import type { Candidate, Decision, DecisionKind } from '../api/types'

/** Policies that can be asked what they would have done. The first is the plain one to compare with. */
export const POLICIES: Record<DecisionKind, string[]> = {
  replicas: ['uniform', 'leeward', 'sinbad', 'sinbad-file', 'ccp', 'rehdfs'],
  tasks: [
    'borg',
    'utp-reactive',
    'utp-proactive',
    'utp',
    'choreo',
    'leeward',
    'random',
    'round-robin',
    'minimum-machines',
  ],
  volumes: ['compactor', 'average', 'knee', 'effective-bandwidth'],
  workload: ['dnc', 'snc', 'best', 'none'],
  move: ['utp-reactive', 'utp-proactive'],
}

export interface Difference {
  /** Hosts that both chose. */
  both: string[]
  /** Hosts of the decision that the other policy would not take. */
  left: string[]
  /** Hosts that only the other policy takes. */
  taken: string[]
  /** What the other's narrowest link has left, over what this one's had; null if either looked at none. */
  factor: number | null
  sentence: string
}

/** What another policy would do differently. */
export function difference(made: Decision, other: Decision): Difference {
  const both = made.hosts.filter((host) => other.hosts.includes(host))
  const left = made.hosts.filter((host) => !other.hosts.includes(host))
  const taken = other.hosts.filter((host) => !made.hosts.includes(host))
  const [own, theirs] = [made.limit?.value_bps, other.limit?.value_bps]
  const factor = own && theirs !== undefined ? theirs / own : null
  return { both, left, taken, factor, sentence: sentence(made, other, left, taken) }
}

function sentence(made: Decision, other: Decision, left: string[], taken: string[]): string {
  if (other.hosts.length === 0) return `${other.policy} would place it nowhere.`
  if (left.length === 0 && taken.length === 0)
    return made.hosts.join() === other.hosts.join()
      ? `${other.policy} would choose the same.`
      : `${other.policy} would choose the same hosts in another order.`
  if (made.hosts.length === 1 && other.hosts.length === 1)
    return `${other.policy} would choose ${other.hosts[0]} instead of ${made.hosts[0]}.`
  return `${other.policy} would choose ${taken.length} of ${other.hosts.length} hosts differently.`
}

/** Candidates as they are best read: those chosen, then those outranked, then those refused; each in its order. */
export function byVerdict(why: Candidate[]): Candidate[] {
  const rank = { chosen: 0, outranked: 1, refused: 2 }
  return [...why].sort((a, b) => rank[a.verdict] - rank[b.verdict])
}
