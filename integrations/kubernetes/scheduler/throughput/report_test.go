package main

import (
	"math"
	"strings"
	"testing"
)

func TestAModeIsComparedWithTheDefaultOfTheSameRound(t *testing.T) {
	for _, c := range []struct {
		name         string
		base, values []float64
		expected     difference
		text         string
	}{
		{"rounds differ more than modes", []float64{100, 200, 400}, []float64{101, 202, 404}, difference{0.01, 0}, "+1.00 % ± 0.00"},
		{"the standard error of three is 0.1 / sqrt(3)", []float64{100, 200, 400}, []float64{110, 200, 360}, difference{0, 0.24843}, "+0.00 % ± 24.84"},
		{"one round has no interval", []float64{200}, []float64{190}, difference{-0.05, math.NaN()}, "-5.00 %"},
	} {
		got := compare(c.base, c.values)
		isNear := func(a, b float64) bool { return math.Abs(a-b) < 1e-5 || math.IsNaN(a) && math.IsNaN(b) }
		if !isNear(got.mean, c.expected.mean) || !isNear(got.half, c.expected.half) {
			t.Errorf("%s: %+v", c.name, got)
		}
		// A mean of 0 may be one of -0.
		if text := strings.Replace(got.String(), "-0.00", "+0.00", 1); text != c.text {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}

func TestManyRoundsHaveAnInterval(t *testing.T) {
	base, values := make([]float64, 100), make([]float64, 100)
	for round := range base {
		base[round], values[round] = 100, 100+float64(round%2)
	}
	// The standard deviation of 50 zeros and 50 ones is sqrt(25 / 99), in percent.
	if got, expected := compare(base, values), 2.042*math.Sqrt(25.0/99)/10/100; math.Abs(got.half-expected) > 1e-9 || got.mean < 0.00499 {
		t.Errorf("%+v, expected %v", got, expected)
	}
}

func TestTheReportHasALineForEachModeAndADifferenceForEachOther(t *testing.T) {
	figures := map[string][]figure{}
	for i, mode := range modes {
		for round := range 2 {
			figures[mode] = append(figures[mode], figure{podsPerSecond: float64(500 + 100*round - 10*i), processor: float64(2 + i)})
		}
	}
	var text strings.Builder
	report(&text, figures)
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 2*(1+len(modes)) || strings.Count(text.String(), " ± ") != 2*(len(modes)-1) {
		t.Errorf("%s", text.String())
	}
}
