package upkeep

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/vfs"
)

func Migrate(a *cli.App) *cobra.Command {
	var to string
	var o varve.MigrateOptions
	c := &cobra.Command{
		Use:   "migrate --to DIR",
		Short: "Move the store to another folder or disk",
		Long: `Copy the store to another folder, which may be on another disk or file system, while other
processes use it; then copy what they have written meanwhile, and compare every memory. The
migration may be interrupted at any point and continues when it is called again.

The copy is not a store yet. --switch makes the copy the store; for that, no other process may have
the store open. The remaining files are copied, every byte is compared, the copy is verified, and
the file moved.json in the old folder records the path of the new folder. The store stays the same
store, with the same versions. --remove-source verifies the new folder again, and then empties the
old folder, except for moved.json; it may be given with --switch or later. Only files whose bytes
were copied are removed: files that were added or changed since are kept and named.

To upgrade: there is one format so far. A newer program opens older formats as they are, and
migrate writes the newest format to the copy. Until the old folder is emptied you can go back, as
long as nothing was written to the new one: remove the new folder, then the files moved.json and
wal/moved.json in the old one.`,
		Example: "  memctl migrate --to /mnt/new/storage\n  memctl migrate --to /mnt/new/storage --switch\n  memctl " +
			"--store storage migrate --to /mnt/new/storage --remove-source",
		Args: cli.Exactly(0, "no arguments; the new folder is given with --to"),
		RunE: a.DoWhole(func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return cli.Usagef(cmd.CommandPath(), "give the path of the new folder with --to")
			}
			if _, err := a.Outside(to, "a store"); err != nil {
				return err
			}
			from, err := a.Locate()
			if err != nil {
				return err
			}
			o.Options = &varve.Options{LockWait: a.Wait, Clock: a.Clock, Listener: a.Heard}
			return migrateStore(cmd.Context(), a, from, to, &o)
		}),
	}
	c.Flags().StringVar(&to, "to", "", "the new `folder`: one that does not exist, is empty, or was begun by an "+
		"earlier run")
	c.Flags().BoolVar(&o.Switch, "switch", false,
		"make the new folder the store; no other process may have the store open")
	c.Flags().BoolVar(&o.RemoveSource, "remove-source", false,
		"after the switch, remove the files of the store from the old folder; only moved.json stays")
	return c
}

// migrated is the JSON document of migrate.
type migrated struct {
	From     string   `json:"from"`
	To       string   `json:"to"`
	Store    string   `json:"store"`
	Version  uint64   `json:"version"` // log position up to which the copy has all changes of memories
	Memories int64    `json:"memories"`
	Bytes    int64    `json:"bytes"`
	Copied   int64    `json:"copied"`    // number of memories that this run copied
	CaughtUp int64    `json:"caught_up"` // how many of Copied were copied because they changed during the run
	Compared int64    `json:"compared"`
	Switched bool     `json:"switched"`
	Removed  bool     `json:"removed"`
	Left     []string `json:"left"`
	Damaged  []string `json:"damaged"`
}

func migrateStore(ctx context.Context, a *cli.App, from, to string, o *varve.MigrateOptions) error {
	end := func() {}
	step, bar := "", func(int64, int64) {}
	if a.Animated() {
		o.Progress = func(what string, done, total int64) {
			if what != step {
				end()
				step = what
				bar, end = a.Bar(what)
			}
			bar(done, total)
		}
	}
	r, err := varve.Migrate(ctx, from, to, o)
	end()
	again := fmt.Sprintf("memctl --store %s migrate --to %s", cli.ShellQuote(from), cli.ShellQuote(to))
	switch {
	case errors.Is(err, context.Canceled):
		return cli.WithFix(err, "to continue: "+again+flags(o))
	case errors.Is(err, varve.ErrLocked) && o.Switch && !r.Switched:
		return cli.WithFix(err, "stop the processes that have the store open, then: "+again+flags(o))
	case err != nil:
		return err
	}
	info, ferr := vfs.OS().Stat(from)
	if made, err := vfs.OS().Stat(to); ferr == nil && err == nil && !r.Removed && info.UID != made.UID {
		a.Note("the store belongs to user %d, the copy to user %d: run memctl migrate as root to make a copy that "+
			"belongs to the owner of the store",
			info.UID, made.UID)
	}
	for _, d := range r.Damaged {
		a.Fail(cli.WithFix(fmt.Errorf("memory %s is not in the copy: %w: %s", cli.PrintableID(d.ID), varve.ErrCorrupt, d.Why),
			"repair the store with memctl repair --apply, then continue the migration"))
	}
	if a.Document != nil {
		m := migrated{from, to, r.Store.String(), r.LSN, r.Memories, r.Bytes, r.Copied, r.CaughtUp, r.Compared, r.Switched,
			r.Removed, []string{}, []string{}}
		m.Left = append(m.Left, r.Left...)
		for _, d := range r.Damaged {
			m.Damaged = append(m.Damaged, d.ID)
		}
		a.Document.Member("migrated", m)
		return nil
	}
	if r.Compared > 0 || !r.Switched {
		a.Say("%s, %s: %d copied in this run (%d of them changed during the run), %d compared",
			cli.Count(int(r.Memories), "memory", "memories"), cli.Size(r.Bytes), r.Copied, r.CaughtUp, r.Compared)
	}
	switch {
	case !r.Switched:
		a.Say("%s is a copy; the store is still %s", to, from)
		a.Say("next: %s --switch", again)
	case !r.Removed:
		a.Say("%s is the store now; the file moved.json in %s records this", to, from)
		a.Say("next: memctl --store %s status; to remove the old files: %s --remove-source", cli.ShellQuote(to), again)
	default:
		a.Say("%s is the store now; %s contains only moved.json%s", to, from,
			map[bool]string{true: ", and the files named below"}[len(r.Left) > 0])
	}
	for _, name := range r.Left {
		a.Note("%s was kept, because it is not a file of the store or was changed after it was copied",
			filepath.Join(from, name))
	}
	return nil
}

// flags returns the options of a migration as flags, for a command line that continues the migration.
func flags(o *varve.MigrateOptions) string {
	s := ""
	if o.Switch {
		s += " --switch"
	}
	if o.RemoveSource {
		s += " --remove-source"
	}
	return s
}
