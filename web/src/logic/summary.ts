import type { Summary } from '../api/types'
import { count, hours, quantity, share } from './format'

/** Time spans of the page, as the address has them. */
export const SPANS = [
  { key: '24h', text: '24 hours', ms: 86_400_000 },
  { key: '7d', text: '7 days', ms: 7 * 86_400_000 },
  { key: '30d', text: '30 days', ms: 30 * 86_400_000 },
] as const

/** Decrease of hot link-hours by Leeward's choices, as a share of those without it; null if there are none. */
export function saved({ hot_link_hours: { with_leeward, without_leeward } }: Summary): number | null {
  return without_leeward > 0 ? 1 - with_leeward / without_leeward : null
}

/** Effect of the service on hot links, in one or two sentences. */
export function verdict(summary: Summary): string {
  const { compared, with_leeward, without_leeward } = summary.hot_link_hours
  if (compared === 0)
    return 'No decision was compared, so the effect is not known. Modes other than off compare each decision with the other policy.'
  const change = saved(summary)
  const hot =
    change === null
      ? 'No link was or would have been hot.'
      : `With Leeward’s choices, links are hot for ${hours(with_leeward)} instead of ${hours(without_leeward)} with the default policy’s: ${share(Math.abs(change))} ${change >= 0 ? 'less' : 'more'}.`
  const sum = (pick: (one: Summary['decisions'][number]) => number) =>
    summary.decisions.reduce((all, one) => all + pick(one), 0)
  const [better, worse] = [sum((one) => one.better), sum((one) => one.worse)]
  return `${hot} Of ${quantity(compared, 'compared decision')}, ${count(better)} were better and ${count(worse)} worse.`
}

/** Part of the decisions without a comparison, in words; null if all were compared. */
export function uncompared({ hot_link_hours: { compared, uncompared } }: Summary): string | null {
  return uncompared === 0
    ? null
    : `${count(uncompared)} of ${count(compared + uncompared)} decisions were not compared.`
}
