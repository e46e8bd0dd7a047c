import type { Page } from '@playwright/test'
import { contrast, type Rgb } from '../src/logic/colour.ts'
import { BOTH_THEMES, expect, expectLive, advance, test } from './fixture.ts'

/** Elements in the tab order whose focus outline is missing, clipped at a side, or low in contrast. */
async function badOutlines(page: Page): Promise<string[]> {
  const bad: string[] = []
  for (let at = 0; at < 25; at++) {
    await page.keyboard.press('Tab')
    const mark = await page.evaluate(() => {
      const focused = document.activeElement as HTMLElement
      if (focused === document.body) return null
      const one = focused.closest('fieldset') ?? focused
      const { outlineStyle, outlineWidth, outlineOffset, outlineColor } = getComputedStyle(one)
      const far = parseFloat(outlineWidth) + parseFloat(outlineOffset)
      const { left, right } = one.getBoundingClientRect()
      const around: Element[] = []
      for (let outer = one.parentElement; outer; outer = outer.parentElement) around.push(outer)
      const cuts = (outer: Element) => {
        const { overflowX, contain } = getComputedStyle(outer)
        const box = outer.getBoundingClientRect()
        const cutting = overflowX !== 'visible' || /strict|content|paint/.test(contain)
        return cutting && (left - far < box.left || right + far > box.right)
      }
      const context = new OffscreenCanvas(1, 1).getContext('2d') as OffscreenCanvasRenderingContext2D
      const rgba = (colour: string) => {
        context.clearRect(0, 0, 1, 1)
        context.fillStyle = colour
        context.fillRect(0, 0, 1, 1)
        return [...context.getImageData(0, 0, 1, 1).data]
      }
      const grounds = around.map((outer) => rgba(getComputedStyle(outer).backgroundColor))
      return {
        name: one.outerHTML.slice(0, 100),
        whole: outlineStyle === 'solid' && outlineWidth === '3px' && !around.some(cuts),
        line: rgba(outlineColor),
        ground: grounds.find(([, , , alpha]) => alpha === 255) ?? [],
      }
    })
    if (!mark) break
    const [line, ground] = [mark.line.slice(0, 3), mark.ground.slice(0, 3)] as unknown as [Rgb, Rgb]
    if (!mark.whole || !(contrast(line, ground) >= 3)) bad.push(mark.name)
  }
  return bad
}

test('the keyboard alone leads to a rack and its tabs', async ({ page, open }) => {
  const mock = await open('racks')
  await expectLive(page)
  await page.keyboard.press('Tab')
  await expect(page.getByRole('link', { name: 'Skip to the content' })).toBeFocused()
  await page.keyboard.press('Enter')
  await expect(page.locator('main')).toBeFocused()
  await page.keyboard.press('Tab')
  await expect(page.getByLabel('Order')).toBeFocused()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await expect(page.locator('[data-rack=r0]')).toBeFocused()
  // Only the last focused tile is in the tab order.
  expect(await page.locator('[data-rack][tabindex="0"]').count()).toBe(1)
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('ArrowRight')
  await expect(page.locator('[data-rack=r2]')).toBeFocused()
  const outline = await page.locator('[data-rack=r2]').evaluate((one) => getComputedStyle(one).outlineWidth)
  expect(outline).toBe('3px')
  await page.keyboard.press('ArrowDown')
  const below = await page.evaluate(() => document.activeElement?.getAttribute('data-rack'))
  expect(Number(below?.slice(1))).toBeGreaterThan(10)
  await page.keyboard.press('Control+Home')
  await expect(page.locator('[data-rack=r0]')).toBeFocused()
  await page.keyboard.press('ArrowLeft')
  await expect(page.locator('[data-rack=r0]')).toBeFocused()
  await page.keyboard.press('ArrowRight')
  // A tick does not move the focus.
  await advance(mock, page, 2)
  await expect(page.locator('[data-rack=r1]')).toBeFocused()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Shift+Tab')
  await expect(page.locator('[data-rack=r1]')).toBeFocused()
  await page.keyboard.press('Enter')
  const heading = page.getByRole('heading', { level: 1 })
  await expect(heading).toHaveText('r1')
  await expect(heading).toBeFocused()
  await page.getByRole('tab', { name: 'Hosts' }).focus()
  await page.keyboard.press('ArrowRight')
  await expect(page.getByRole('tab', { name: 'Tasks' })).toBeFocused()
  await expect(page.getByRole('tab', { name: 'Tasks' })).toHaveAttribute('aria-selected', 'true')
})

test('map over time: arrow keys move, Space holds a time, Enter opens the rack', async ({ page, open }) => {
  await open('racks')
  await expectLive(page)
  await expect(page.getByLabel('Moment')).toBeEnabled()
  const cell = page.getByRole('grid', { name: 'Utilization of racks over time' }).getByRole('gridcell')
  await expect(cell).toHaveCount(1)
  await cell.focus()
  await expect(cell).toHaveAttribute('aria-label', /^r0, .*: uplink/)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowRight')
  await expect(cell).toBeFocused()
  await expect(cell).toHaveAttribute('aria-label', /^r1, .*: downlink/)
  await page.keyboard.press('End')
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('Space')
  await expect(page.getByRole('heading', { name: /not now/ })).toBeVisible()
  await page.keyboard.press('Escape')
  await expect(page.getByRole('heading', { name: 'Now' })).toBeVisible()
  await page.keyboard.press('Enter')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('r1')
})

test(
  'the focus outline is complete and has enough contrast on every focusable element',
  BOTH_THEMES,
  async ({ page, open }) => {
    await open('racks', { lab: 8 })
    await expectLive(page)
    for (const path of ['racks', 'racks/r12', 'decisions/d-718-1', 'hotspots', 'workloads', 'lab']) {
      await page.evaluate((path) => (location.hash = `#/${path}`), path)
      await expect(page.getByText(/^Loading/)).toHaveCount(0)
      expect(await badOutlines(page), path).toEqual([])
    }
    await page.evaluate(() => (location.hash = '#/racks/r12'))
    await page.getByRole('tab', { name: 'Tasks' }).click()
    expect(await badOutlines(page)).toEqual([])
    await open('racks', { token: 'sesame' })
    await page.getByRole('button', { name: 'Close' }).click()
    await expect(page.getByRole('button', { name: 'Enter a token' })).toBeVisible()
    expect(await badOutlines(page)).toEqual([])
  },
)

test('a button selects the theme, and the page keeps it', async ({ page, open }) => {
  await open('racks')
  await expectLive(page)
  const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
  const button = page.getByRole('button', { name: /^Colours/ })
  await button.press('Enter')
  expect(await background()).toBe('rgb(250, 248, 245)')
  await button.press('Enter')
  expect(await background()).toBe('rgb(21, 23, 27)')
  await page.reload()
  await expectLive(page)
  expect(await background()).toBe('rgb(21, 23, 27)')
  await expect(button).toHaveAccessibleName('Colours: dark. Change.')
})

test('reduced motion disables transitions', async ({ page, open }) => {
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await open('racks')
  await expectLive(page)
  const transition = await page
    .locator('.half')
    .first()
    .evaluate((one) => getComputedStyle(one).transitionProperty)
  expect(transition).toBe('none')
})
