package main

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
)

func initCommand(a *app) *cobra.Command {
	var segment int
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Make a store",
		Long: `Make a store in DIR, else in the folder that --store or MEMCTL_STORE names, else in
./storage. Where there is a store already nothing changes.`,
		Example: "  memctl init\n  memctl init ~/agent/memory",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.do(func(cmd *cobra.Command, args []string) error {
			if err := (&varve.Options{SegmentSize: segment}).Validate(); err != nil {
				return usagef(cmd.CommandPath(), "--segment-size: %w", err)
			}
			dir := cmp.Or(a.named(), storeFolder)
			if len(args) == 1 {
				if a.store != "" && filepath.Clean(a.store) != filepath.Clean(args[0]) {
					return usagef(cmd.CommandPath(), "two folders are named: %s and --store %s", args[0], a.store)
				}
				dir = args[0]
			}
			if dir == "" {
				return usagef(cmd.CommandPath(), "the folder's name is empty")
			}
			made := !isStore(dir)
			sized := func(o *varve.Options) { o.SegmentSize = segment }
			return a.withIn(cmd.Context(), dir, create, sized, func(st *varve.Store) error {
				path, err := filepath.Abs(dir)
				if err != nil {
					return fmt.Errorf("finding the path of %s: %w", dir, err)
				}
				a.document.member("store", path)
				a.document.member("created", made)
				if !made {
					a.say("%s is a store already; nothing was changed", path)
					return nil
				}
				a.say("made a store in %s", path)
				if found, err := a.locate(); err != nil || !sameFolder(found, dir) {
					a.say("name it by --store %s, or once: export %s=%s", dir, storeVariable, path)
				}
				return nil
			})
		}),
	}
	c.Flags().IntVar(&segment, "segment-size", 0, "`bytes` of one segment of the log; one commit takes at most half (default 67108864)")
	return c
}

func sameFolder(a, b string) bool {
	x, err := filepath.Abs(a)
	if err != nil {
		return false
	}
	y, err := filepath.Abs(b)
	return err == nil && x == y
}
