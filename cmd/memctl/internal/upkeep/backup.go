package upkeep

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/locate"
)

func Backup(a *cli.App) *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the store while other processes use it",
		Long: `Copy all memories into a new folder, and the log from the start of the copy to its end, so that
memctl restore can restore every moment between the two. No process has to stop. The folder gets
its name only after everything was written and read back; if much more is written meanwhile than
the log may hold, the backup fails, and no other process is affected. --check reads a backup from
end to end instead.`,
		Example: "  memctl backup /mnt/backups/$(date +%F)\n  memctl backup --check /mnt/backups/2026-01-31",
		Args:    cli.Exactly(1, "the folder of the backup"),
		RunE: a.DoWhole(func(cmd *cobra.Command, args []string) error {
			if check {
				info, err := varve.CheckBackup(cmd.Context(), args[0])
				if err != nil {
					return unsound(a, err)
				}
				backedUp(a, "is sound", args[0], &info)
				return nil
			}
			if above, err := a.Outside(args[0], "a backup"); err != nil && (above == "" || !isBackups(args[0], above)) {
				return cli.WithFix(err, "name a folder outside of it, or in its backups/")
			}
			return a.With(cmd.Context(), cli.Read, func(st *varve.Store) error { return backUp(cmd.Context(), a, st, args[0]) })
		}),
	}
	c.Flags().BoolVar(&check, "check", false, "read a backup from end to end instead of making one")
	return c
}

// isBackups reports whether a folder is in the store's folder for backups.
func isBackups(dir, store string) bool {
	above, err := locate.Above(dir, func(dir string) bool { return dir == filepath.Join(store, "backups") })
	return err == nil && above != ""
}

// unsound prints each fault of a backup, and returns the last one.
func unsound(a *cli.App, err error) error {
	const fix = "restore the sound part of it, or restore another backup; if the store still exists, make a new " +
		"backup: memctl backup DIR"
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		faults := all.Unwrap()
		err = faults[len(faults)-1]
		for _, fault := range faults[:len(faults)-1] {
			a.Note("%v", fault)
			a.Tell(cli.Classify(cli.WithFix(fault, fix)))
		}
	}
	return cli.WithFix(err, fix)
}

func backUp(ctx context.Context, a *cli.App, st *varve.Store, dir string) error {
	progress, done := a.Bar("backing up")
	info, err := st.Backup(ctx, dir, varve.BackupOptions{Progress: progress})
	done()
	if err != nil {
		return err
	}
	backedUp(a, "is complete", dir, &info)
	tellLeft(a, info.Left)
	return nil
}

// tellLeft prints the names of unfinished backups and restores of killed processes that were not removed.
func tellLeft(a *cli.App, left []string) {
	for _, l := range left {
		a.Note("note: left over from a killed memctl backup or restore: %s", l)
	}
}

// savedMoment is a commit in a JSON document.
type savedMoment struct {
	Version uint64    `json:"version"`
	Time    time.Time `json:"time"`
}

// savedBackup describes a backup in the JSON document.
type savedBackup struct {
	Path       string      `json:"path"`
	Store      string      `json:"store"`
	Made       time.Time   `json:"made"`
	Memories   int64       `json:"memories"`
	Assemblies int64       `json:"assemblies"`
	Bytes      int64       `json:"bytes"`
	First      savedMoment `json:"first"`
	Last       savedMoment `json:"last"`
	From       time.Time   `json:"from"` // the earliest moment that restore --at accepts
	To         time.Time   `json:"to"`   // the latest moment that restore --at accepts
	Damaged    []string    `json:"damaged"`
}

// documents returns the numbers of memories and assemblies as text.
func documents(memories, assemblies int64) string {
	s := cli.Count(int(memories), "memory", "memories")
	if assemblies > 0 {
		s += ", " + cli.Count(int(assemblies), "assembly", "assemblies")
	}
	return s
}

// nounIn returns the noun for a document of a folder.
func nounIn(folder string) string {
	if folder == "assemblies" {
		return "assembly"
	}
	return "memory"
}

func backedUp(a *cli.App, what, dir string, info *varve.BackupInfo) {
	s := savedBackup{dir, info.Store.String(), info.Made, info.Memories, info.Assemblies, info.Bytes,
		savedMoment{info.First.LSN, info.First.Time}, savedMoment{info.Last.LSN, info.Last.Time}, info.First.Time, info.Until,
		[]string{}}
	for _, d := range info.Damaged {
		s.Damaged = append(s.Damaged, d.ID)
	}
	if a.Document != nil {
		a.Document.Member("backup", s)
	} else {
		a.Say("%s %s: %s, %s", dir, what, documents(s.Memories, s.Assemblies), cli.Size(s.Bytes))
		a.Say("restore it with: memctl restore %s NEW-DIR", cli.ShellPath(dir))
		a.Say("--at takes any moment from %s to %s; with --log STORE also later ones", s.From.Format(time.RFC3339Nano),
			s.To.Format(time.RFC3339Nano))
	}
	for _, d := range info.Damaged {
		a.Fail(cli.WithFix(fmt.Errorf("%s %s is not in the backup: %w: %s", nounIn(d.In), cli.PrintableID(d.ID),
			varve.ErrCorrupt, d.Why), "an older backup may have it; memctl verify says more"))
	}
}
