import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page } from '@playwright/test'
import { serve } from '../../mock/files.ts'
import { accessible, careful, expect } from '../fixture.ts'
import { Service } from './service.ts'

export { accessible, live, measuring } from '../fixture.ts'
export { COMMAND, even, Service } from './service.ts'
export { expect }

export const DIST = fileURLToPath(new URL('../../dist', import.meta.url))

interface Fixtures {
  /** Starts a service with a cluster of examples/clusters, or a demo with null; it ends with the test. */
  start: (cluster: string | null, options?: string[], token?: string) => Promise<Service>
  /** Opens the page that was built on a service. */
  visit: (service: Service, path?: string) => Promise<void>
}

/** Tests of the page on a service that runs. That the service itself serves this page is a test of its own. */
export const test = careful.extend<Fixtures>({
  start: async ({}, use, info) => {
    const running: Service[] = []
    mkdirSync(info.outputDir, { recursive: true })
    await use(async (cluster, options = [], token) => {
      const store = cluster === null || options.includes('--store') ? [] : ['--store', 'memory']
      const service = await Service.start(cluster, [...store, ...options], info.outputDir, token)
      running.push(service)
      return service
    })
    await Promise.all(running.map((service) => service.stop()))
  },
  visit: async ({ page, served }, use) => {
    await use(async (service, path = '') => {
      const server = await serve(DIST, (request, response) => service.answer(request, response))
      served.push(server)
      await page.goto(server.url + (path ? `#/${path}` : ''))
    })
  },
})

/** Keeps telemetry coming until the test ends, as agents do. */
export async function feed(
  page: Page,
  service: Service,
  loads: Record<string, number>,
  other: object = {},
): Promise<() => void> {
  const report = () => service.report(loads, {}, other)
  await report()
  const timer = setInterval(() => void report().catch(() => undefined), 500)
  const end = () => clearInterval(timer)
  page.once('close', end)
  return end
}

/** That a page is right for those who do not see it, in dark and in light. */
export async function readable(page: Page): Promise<void> {
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme })
    // Colours have come to rest.
    await page.waitForTimeout(600)
    await accessible(page)
  }
}
