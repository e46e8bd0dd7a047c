// Package help writes the help texts of commands, and errors about their flags.
package help

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// Command describes a command.
type Command struct {
	// Usage is the command with its arguments, such as `kubectl leeward explain pod/NAME`.
	Usage, Summary string
	// Examples are complete commands.
	Examples []string
}

// Write writes the summary, the usage, the examples and the flags of a command.
func (c Command) Write(to io.Writer, set *flag.FlagSet) {
	fmt.Fprintf(to, "%s\n\nUsage: %s [flags]\n\nExamples:\n", c.Summary, c.Usage)
	for _, example := range c.Examples {
		fmt.Fprintf(to, "  %s\n", example)
	}
	fmt.Fprint(to, "\nFlags:\n")
	set.VisitAll(func(f *flag.Flag) {
		dashes := "--"
		if len(f.Name) == 1 {
			dashes = "-"
		}
		value, text := flag.UnquoteUsage(f)
		switch f.DefValue {
		case "", "0", "0s", "false":
		default:
			text += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(to, "  %-28s %s\n", strings.TrimSpace(dashes+f.Name+" "+value), text)
	})
}

// Problem returns the text of an error of a flag set, with two dashes before the name of a flag.
func Problem(err error) string {
	return strings.NewReplacer("flag -", "flag --", "defined: -", "defined: --", "argument: -", "argument: --", "for -", "for --").
		Replace(err.Error())
}

// ByFlag returns an error that begins with the name of a setting as one that begins with its flag. Flags have the names of
// their settings with `-` for each space; others has the flags with another name. The error of a setting without a flag stays.
func ByFlag(set *flag.FlagSet, err error, others map[string]string) error {
	if err == nil {
		return nil
	}
	setting, problem, _ := strings.Cut(err.Error(), ": ")
	name, ok := others[setting]
	if !ok {
		name = strings.ReplaceAll(setting, " ", "-")
	}
	if set.Lookup(name) == nil {
		return err
	}
	return fmt.Errorf("--%s: %s", name, problem)
}
