package upkeep

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/seal"
	"github.com/varve-db/varve/internal/timearg"
)

func Restore(a *cli.App) *cobra.Command {
	var at, log, spelled, identity string
	var strict, withPurged bool
	c := &cobra.Command{
		Use:   "restore BACKUP DIR",
		Short: "Create a new store from a backup, as of any moment",
		Long: `Create a store in a new folder from a backup (a folder or a packed file), as of the end of the
backup or, with --at, as of any moment that the log of the backup covers. If the store that was
backed up still exists, --log STORE continues in the log and the archive of that store: a backup of
yesterday and the store of today give every moment between. A time means the state after the last
commit at which the clock showed that time or an earlier one; earlier commits are included even if
the clock was ahead when they were made. From a damaged backup, everything undamaged is restored.
Damaged files are restored from the log of the backup, or with --log from the store, if these have
the content; every damaged file is named, and the exit status is 2. Existing files are never
overwritten. The new store has its own UUID, and its folder gets its name only after everything was
written and read back.

Purged documents stay away: a document is left out, and counted, if the backup, or the store of
--log, records that it was purged, whichever moment is restored; --with-purged restores such
documents too. A backup that is older than a purge has no record of the purge, so without --log it
restores documents that were purged later.`,
		Example: "  memctl restore /mnt/backups/2026-01-31 restored\n  memctl restore /mnt/backups/2026-01-31 before --at " +
			"2026-01-31T09:59:00Z --log storage\n  memctl restore /mnt/backups/2026-01-31 before --at 67108992",
		Args: cli.Exactly(2, "a backup and the folder of the new store"),
		RunE: a.DoWhole(func(cmd *cobra.Command, args []string) error {
			if _, err := a.Outside(args[1], "a store"); err != nil {
				return err
			}
			o := varve.RestoreOptions{Log: log, Strict: strict, WithPurged: withPurged,
				Options: &varve.Options{LockWait: a.Wait, Clock: a.Clock}}
			if cmd.Flags().Changed("at") {
				if lsn, err := strconv.ParseUint(at, 10, 64); err == nil && lsn > 0 {
					o.Version = lsn
					spelled, _ = timearg.Spelled(at, a.Clock().Local())
				} else if t, err := timearg.Parse(at, a.Clock().Local()); err != nil {
					return cli.Usagef(cmd.CommandPath(), "--at %w, or a version", err)
				} else {
					o.Time = t.From
				}
			}
			var err error
			if o.Unseal, err = seal.Identities(identity); err != nil {
				return err
			}
			return restoreBackup(cmd.Context(), a, args[0], args[1], o, spelled)
		}),
	}
	c.Flags().StringVar(&at, "at", "",
		"restore this `moment`: a time (2026-01-31T15:04:05Z, 2026-01-31, yesterday 17:00, 90m, 7d ago) or the "+
			"number of a version")
	c.Flags().StringVar(&log, "log", "", "the `store` that was backed up, if it still exists; it is only read")
	c.Flags().StringVar(&identity, "identity", "",
		"the `file` with the age identity (private key) that opens a sealed backup")
	c.Flags().BoolVar(&strict, "strict", false, "refuse a damaged backup (exit status 3)")
	c.Flags().BoolVar(&withPurged, "with-purged", false, "also restore documents that were purged after the backup")
	return c
}

// restored is the JSON document of restore.
type restored struct {
	Path       string     `json:"path"`
	Memories   int64      `json:"memories"`
	Assemblies int64      `json:"assemblies"`
	Bytes      int64      `json:"bytes"`
	Version    uint64     `json:"version"` // newest commit in the restored store
	Time       *time.Time `json:"time,omitempty"`
	Damaged    []string   `json:"damaged"`
	Damage     []rescued  `json:"damaged_files"`
	Purged     int64      `json:"purged"` // omitted: purged in the store
}

// rescued describes, in the JSON document, a file of a backup that was damaged, and what the restore did with the
// file. Done is the source of the restored content, or "missing".
type rescued struct {
	Path    string `json:"path"`
	ID      string `json:"id,omitempty"`
	Why     string `json:"why"`
	Done    string `json:"done"`
	Missing bool   `json:"missing"`
}

// restoreBackup restores a backup in the folder dir. If the user gave a number that looks like a time, spelled is this
// time in full, for the remedy of an error; otherwise spelled is "".
func restoreBackup(ctx context.Context, a *cli.App, backup, dir string, o varve.RestoreOptions, spelled string) error {
	var done func()
	o.Progress, done = a.Bar("restoring")
	r, err := varve.Restore(ctx, resolveBackup(backup), dir, &o)
	done()
	var moment *varve.MomentError
	if errors.As(err, &moment) {
		fix := "give a moment in this range, or use an older backup"
		if o.Log == "" {
			fix += ", or use --log to give the path of the store that was backed up"
		}
		if spelled != "" {
			fix = fmt.Sprintf("a number alone is a version; if you mean the time, use --at %s; or ", spelled) + fix
		}
		err = cli.WithFix(err, fix)
	}
	if errors.Is(err, varve.ErrCorrupt) {
		err = cli.WithFix(err,
			"memctl backup --check "+cli.ShellPath(backup)+
				" reads all of the backup; restore an older backup, or if the store still exists, make a new one: "+
				"memctl backup DIR")
	}
	if errors.Is(err, varve.ErrNoStore) {
		err = cli.WithFix(err,
			"give the path of a folder or file made by memctl backup; with --log, give the path of a store")
	}
	if err != nil {
		return err
	}
	s := restored{dir, r.Memories, r.Assemblies, r.Bytes, r.Moment.LSN, cli.OrNil(r.Moment.Time), []string{}, []rescued{},
		r.Purged}
	for _, d := range r.Damaged {
		if d.In == "vector_index" { // not a memory
			s.Damaged = append(s.Damaged, d.In+"/"+d.ID)
			continue
		}
		s.Damaged = append(s.Damaged, d.ID)
		a.Note("%s %s was damaged when the backup was made, and is not in the backup: %s",
			nounIn(d.In), cli.PrintableID(d.ID), d.Why)
	}
	left := 0
	for _, d := range r.Damage {
		s.Damage = append(s.Damage, rescued{d.Path, d.ID, d.Why, d.Done, d.Missing})
		a.Note("%s", d.String())
		if d.Missing {
			left++
		}
	}
	tellLeft(a, r.Left)
	if r.Purged > 0 {
		a.Note("omitted %s of the backup that the store has purged; --with-purged restores purged documents too",
			cli.Count(int(r.Purged), "document", "documents"))
	}
	a.Document.Member("restored", s)
	a.Say("%s is a store: %s, %s, as of %s", dir, documents(s.Memories, s.Assemblies), cli.Size(s.Bytes),
		r.Moment.Time.Format(time.RFC3339Nano))
	if o.Time.After(a.Clock()) && o.Time.After(r.Moment.Time) {
		a.Note("%s is in the future, so the newest state was restored", o.Time.Format(time.RFC3339))
	}
	a.Say("next: memctl --store %s status", cli.ShellQuote(dir))
	if len(r.Damage) == 0 {
		return nil
	}
	f := &cli.Failure{Kind: "damage", Message: fmt.Sprintf("%s damaged in the backup; the whole content of the "+
		"backup was restored",
		cli.Count(len(r.Damage), "file is", "files are")), Path: backup, Code: cli.CodeDamage,
		Fix: "make a new backup: memctl backup DIR"}
	if left > 0 {
		f.Message = fmt.Sprintf("%s damaged in the backup; %d of them could not be restored completely",
			cli.Count(len(r.Damage), "file is", "files are"), left)
		f.Fix = "an older backup may contain the missing data; memctl --store " + cli.ShellQuote(dir) + " status " +
			"shows the restored store"
		if o.Log == "" {
			f.Fix = "if the store that was backed up still exists, restore into a new folder with --log STORE; " + f.Fix
		}
	}
	a.Tell(f)
	return nil
}
