package help

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

func flags() *flag.FlagSet {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.String("o", "table", "`format`: table or json")
	set.Int("hot-windows", 5, "`number` of windows")
	set.Bool("adopt", false, "adopt hosts")
	set.String("controller", "", "`address`")
	return set
}

func TestAHelpTextHasTheSummaryTheUsageExamplesAndFlagsWithTheirDefaults(t *testing.T) {
	var text strings.Builder
	Command{Usage: "tool run", Summary: "Runs.", Examples: []string{"tool run -o json"}}.Write(&text, flags())
	expected := `Runs.

Usage: tool run [flags]

Examples:
  tool run -o json

Flags:
  --adopt                      adopt hosts
  --controller address         address
  --hot-windows number         number of windows (default 5)
  -o format                    format: table or json (default table)
`
	if text.String() != expected {
		t.Errorf("%s", text.String())
	}
}

func TestAnErrorOfAFlagSetHasTwoDashes(t *testing.T) {
	for arguments, expected := range map[string]string{
		"--hot-windows=many": `invalid value "many" for flag --hot-windows`,
		"--hot":              "flag provided but not defined: --hot",
		"--hot-windows":      "flag needs an argument: --hot-windows",
		"--adopt=maybe":      `invalid boolean value "maybe" for --adopt`,
	} {
		if problem := Problem(flags().Parse([]string{arguments})); !strings.HasPrefix(problem, expected) {
			t.Errorf("%s: %s", arguments, problem)
		}
	}
}

func TestTheErrorOfASettingNamesItsFlag(t *testing.T) {
	others := map[string]string{"controllers": "controller"}
	for problem, expected := range map[string]string{
		"hot windows: 0: expected 1 to 1000": "--hot-windows: 0: expected 1 to 1000",
		`controllers: "a: b": expected`:      `--controller: "a: b": expected`,
		"configmap: no name":                 "configmap: no name",
	} {
		if err := ByFlag(flags(), errors.New(problem), others); err.Error() != expected {
			t.Errorf("%s: %s", problem, err)
		}
	}
	if err := ByFlag(flags(), nil, others); err != nil {
		t.Errorf("%v", err)
	}
}
