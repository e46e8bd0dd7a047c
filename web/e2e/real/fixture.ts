import { mkdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page } from '@playwright/test'
import { serve } from '../../mock/files.ts'
import { expectAccessible, strictTest, expect } from '../fixture.ts'
import { Service } from './service.ts'

export { expectAccessible, expectLive, meters } from '../fixture.ts'
export { COMMAND, evenLoads, Service } from './service.ts'
export { expect }

export const DIST = fileURLToPath(new URL('../../dist', import.meta.url))

interface Fixtures {
  /** Starts a service with a cluster of examples/clusters, or a demo if null. The service stops with the test. */
  start: (cluster: string | null, options?: string[], token?: string) => Promise<Service>
  /** Opens the built page with a service as its API. */
  visit: (service: Service, path?: string) => Promise<void>
}

/** Test of the built page on a real service. A test of its own covers that the service serves the same page. */
export const test = strictTest.extend<Fixtures>({
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
  visit: async ({ page, servers }, use) => {
    await use(async (service, path = '') => {
      const server = await serve(DIST, (request, response) => service.answer(request, response))
      servers.push(server)
      await page.goto(server.url + (path ? `#/${path}` : ''))
    })
  },
})

/** Reports telemetry twice per second until the test ends, as agents do. Returns a stop function. */
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

/** Expects that the page is accessible in the dark and the light theme. */
export async function expectReadable(page: Page): Promise<void> {
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme })
    // Waits for the end of colour transitions.
    await page.waitForTimeout(600)
    await expectAccessible(page)
  }
}
