package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"leeward.dev/kubernetes/evictor"
	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/ledger"
)

// statusPause is the time between two requests for the state of a service that does not answer.
const statusPause = 2 * time.Second

// Names of schedulers for --schedulers.
const (
	defaultScheduler = "leeward-scheduler"
	everyScheduler   = "*"
)

// schedulerNames returns the names in a text, nil for every scheduler.
func schedulerNames(text string) ([]string, error) {
	if text == everyScheduler {
		return nil, nil
	}
	names := strings.Split(text, ",")
	for _, name := range names {
		if name == "" || name == everyScheduler {
			return nil, fmt.Errorf("%w: --schedulers: %q: expected names with commas, or %s for all", errUsage, text, everyScheduler)
		}
	}
	return names, nil
}

// fromService are settings that are by default those of the service; 0 stands for them.
type fromService struct {
	interval         time.Duration
	alpha, threshold float64
}

// ask requests the settings that are 0 from the service until it answers.
func (p *process) ask(ctx context.Context, settings *fromService) error {
	if settings.interval != 0 && settings.alpha != 0 && settings.threshold != 0 {
		return nil
	}
	p.asks.Store(true)
	for {
		status, err := p.service.Status(ctx)
		if err == nil {
			err = settings.fill(status)
		}
		if err == nil {
			p.complete(settings)
			p.asks.Store(false)
			return nil
		}
		p.log.Warn("the service does not say its settings; asking again", "problem", err.Error())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(statusPause):
		}
	}
}

// fill replaces the settings that are 0 by those of the service.
func (f *fromService) fill(status httpapi.Status) error {
	if f.interval == 0 {
		if status.Interval <= 0 || status.Interval > time.Hour.Seconds() {
			return fmt.Errorf("interval_s: %v: expected seconds up to an hour", status.Interval)
		}
		f.interval = time.Duration(status.Interval * float64(time.Second))
	}
	if f.threshold == 0 {
		if status.HotAbove < 0 || status.HotAbove > 1 {
			return fmt.Errorf("hot_above: %v: expected a share up to 1", status.HotAbove)
		}
		f.threshold = status.HotAbove
	}
	if f.alpha == 0 {
		f.alpha = status.Ledger.Alpha
	}
	return nil
}

// complete replaces the settings that the service does not say by the defaults.
func (p *process) complete(settings *fromService) {
	if settings.alpha == 0 {
		settings.alpha = ledger.DefaultAlpha
		p.log.Warn("the service does not say the weight of a report; name it with --alpha if it is not the default",
			"alpha", settings.alpha)
	}
	if settings.threshold == 0 {
		settings.threshold = evictor.DefaultSettings().Threshold
		p.log.Warn("the service does not say above which utilization a link is hot; name it with --threshold if it is not the default",
			"threshold", settings.threshold)
	}
}
