package main

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/template"
)

func configUnsetCommand(a *cli.App) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "unset NAME...", Short: "Restore the defaults of settings",
		Long: `Restore the defaults of settings. If the change would delete memories or history, memctl says so and
asks for confirmation on a terminal, as config set does; elsewhere it requires --yes.`,
		Example: "  memctl config unset max_memories at_limit", Args: cli.AtLeastOne("the name of a setting"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error { return unsetConfig(a, cmd, args, yes) }),
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return c
}

// unsetConfig restores the defaults of the settings that the arguments name, with one change of config.json. If yes is
// false and the change would delete memories or history, unsetConfig asks the user to confirm.
func unsetConfig(a *cli.App, cmd *cobra.Command, args []string, yes bool) error {
	chosen := make([]setting, len(args))
	for i, name := range args {
		var err error
		if chosen[i], err = settingOf(cmd.CommandPath(), name); err != nil {
			return err
		}
	}
	return a.With(cmd.Context(), cli.Write, func(st *varve.Store) error {
		c := st.Admin().Config()
		was := c
		for _, s := range chosen {
			unassign(&c, s.name)
		}
		if !yes {
			if err := mayLose(cmd, a, st, &was, &c); err != nil {
				return err
			}
		}
		err := st.Admin().UpdateConfig(cmd.Context(), func(now *varve.Config) error {
			for _, s := range chosen {
				unassign(now, s.name)
			}
			c = *now
			return nil
		})
		if err != nil {
			return err
		}
		for i, s := range chosen {
			if slices.Contains(args[:i], s.name) {
				continue // given twice
			}
			a.Document.Member(s.name, s.value(&c))
			a.Say("%s is %s, the default", s.name, s.text(&c))
		}
		return nil
	})
}

// unassign sets a setting to zero, which means its default and is omitted from the file.
func unassign(c *varve.Config, name string) {
	switch name {
	case textFields:
		c.Text = nil
	case embedTemplate:
		assignTemplate(c, name, keepTemplate)
	case queryTemplate:
		assignTemplate(c, name, template.Query)
	}
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); tag == name {
			v.Field(i).SetZero()
		}
	}
}

// inUnits converts a duration to a number of seconds or days. If value is not a duration, or is a fraction of a unit,
// inUnits returns it unchanged, so that the setting is refused.
func inUnits(value string, unit time.Duration) string {
	if value == "0s" || value == "0d" {
		return "0"
	}
	d, err := span.Parse(value)
	if err != nil || d%unit != 0 {
		return value
	}
	return strconv.FormatInt(int64(d/unit), 10)
}

// nearNames returns the names of the settings that may be meant by a mistyped name: those that contain the name, and
// those that differ from it in few letters.
func nearNames(name string) (near []string) {
	folded := strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	for _, s := range settingNames() {
		if len(folded) > 2 && strings.Contains(s, folded) || human.Distance(folded, s) <= 1+len(folded)/5 {
			near = append(near, s)
		}
	}
	return near
}
