package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/doctorcmd"
)

// doctorCommand returns memctl doctor. The report shows the value of a text setting only if it is one of a
// fixed list of values; otherwise it shows only that the setting is set.
func doctorCommand(a *cli.App) *cobra.Command {
	var list []doctorcmd.Setting
	for _, s := range settings() {
		list = append(list, doctorcmd.Setting{Name: s.name, Value: func(c *varve.Config) any {
			switch v := s.value(c).(type) {
			case bool, int, int64, float64:
				return v
			case string:
				if slices.Contains(choices(s.name), v) {
					return v
				}
				if v == s.value(&varve.Config{}) {
					return nil
				}
			}
			return "set"
		}})
	}
	return doctorcmd.Command(a, list)
}
