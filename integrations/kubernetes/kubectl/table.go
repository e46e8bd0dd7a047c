package kubectl

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

// rows writes a table: a header, and rows of cells.
func rows(to io.Writer, header string, lines [][]string) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(header, ", ", "\t"))
	for _, line := range lines {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	w.Flush()
}

// none stands for an unknown or missing value in tables.
const none = "-"

// sumNote explains the mark of links without a counter.
const sumNote = "* the sum of the nodes, since the link has no counter: traffic within the rack counts\n"

// marked returns a text, with a mark if it is about a link whose load is a sum.
func marked(text string, isSum bool) string {
	if isSum {
		return text + "*"
	}
	return text
}

// percent returns a share as text.
func percent(share *float64) string {
	if share == nil || math.IsNaN(*share) {
		return none
	}
	return fmt.Sprintf("%.0f%%", 100**share)
}

// rate returns a rate in bit/s as text, with three digits.
func rate(bps float64) string {
	for _, unit := range []struct {
		name  string
		scale float64
	}{{"Tb/s", 1e12}, {"Gb/s", 1e9}, {"Mb/s", 1e6}, {"kb/s", 1e3}} {
		if math.Abs(bps) >= unit.scale {
			return fmt.Sprintf("%.3g %s", bps/unit.scale, unit.name)
		}
	}
	return fmt.Sprintf("%.0f b/s", bps)
}

// age returns a time in seconds as text.
func age(seconds float64) string {
	return (time.Duration(seconds * float64(time.Second))).Round(time.Second).String()
}

// word returns a text, or the sign for none.
func word(text string) string {
	if text == "" {
		return none
	}
	return text
}

// known returns a number, nil if it is unknown: JSON has no NaN.
func known(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return &value
}
