package upkeep

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/locate"
	"github.com/varve-db/varve/cmd/memctl/internal/seal"
)

// backupFlags are the flags of backup.
type backupFlags struct {
	check, packed bool
	recipients    []string
	single        bool
	identity      string
}

func Backup(a *cli.App) *cobra.Command {
	var f backupFlags
	c := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy the store while other processes use it",
		Long: `Copy all memories into a new folder, and the log from the start of the copy to its end, so that
memctl restore can restore every moment between the two. No process has to stop. The folder gets
its name only after everything was written and read back; if much more is written meanwhile than
the log may hold, the backup fails, and no other process is affected. --check reads a backup from
end to end instead.

--packed writes one compressed file in place of the folder, several times smaller and faster to
make; - is standard output, which cannot be read back. memctl restore and --check take either.

--recipient seals a packed backup with age, names and metadata included: only the identity of a
recipient opens it. This machine needs no identity, so it checks the sealed bytes; --check with
--identity checks all. Give two recipients, or --single-recipient: once all identities are lost, the
backup is too.`,
		Example: "  memctl backup /mnt/backups/$(date +%F)\n  memctl backup --check /mnt/backups/2026-01-31\n" +
			"  memctl backup --packed /mnt/backups/$(date +%F).varve\n" +
			"  memctl backup --packed - | ssh host 'cat > today.varve'\n" +
			"  memctl backup --packed --recipient age1… --recipient age1… today.varve.age",
		Args: cli.Exactly(1, "the folder or file of the backup"),
		RunE: a.DoWhole(func(cmd *cobra.Command, args []string) error {
			if err := f.validate(cmd.CommandPath()); err != nil {
				return err
			}
			switch out := args[0] == stdout; {
			case f.check:
				return checkBackup(cmd.Context(), a, args[0], f.identity)
			case out && !f.packed:
				return cli.Usagef(cmd.CommandPath(), "a folder cannot be written to standard output: add --packed")
			case out && a.Document != nil:
				return cli.Usagef(cmd.CommandPath(),
					"the backup goes to standard output: give the path of a file, or omit --json")
			case out && a.Out.Screen:
				return cli.Usagef(cmd.CommandPath(),
					"the backup is not text, and standard output is a terminal: redirect standard output, or give "+
						"the path of a file")
			case !out:
				if above, err := a.Outside(args[0], "a backup"); err != nil && (above == "" || !isBackups(args[0], above)) {
					return cli.WithFix(err, "give a path outside the store's folder, or inside its folder backups/")
				}
			}
			o := varve.BackupOptions{Packed: f.packed}
			if len(f.recipients) > 0 {
				var err error
				if o.Seal, err = seal.Recipients(f.recipients); err != nil {
					return cli.Usagef(cmd.CommandPath(), "--recipient: %w", err)
				}
			}
			return a.With(cmd.Context(), cli.Read, func(st *varve.Store) error {
				return backUp(cmd.Context(), a, st, args[0], o)
			})
		}),
	}
	c.Flags().BoolVar(&f.check, "check", false, "read a backup from end to end instead of making one")
	c.Flags().BoolVar(&f.packed, "packed", false,
		"write one compressed file instead of a folder; - writes it to standard output")
	c.Flags().StringArrayVar(&f.recipients, "recipient", nil,
		"encrypt (seal) a packed backup with age for the owner of this public key (age1…); may be repeated")
	c.Flags().BoolVar(&f.single, "single-recipient", false,
		"allow only one recipient; keep its identity (private key) in two places")
	c.Flags().StringVar(&f.identity, "identity", "",
		"with --check, the `file` with the age identity (private key) that opens a sealed backup")
	return c
}

// validate returns an error if the flags contradict each other. For example, --recipient without --packed is an error,
// because memctl must never write an unencrypted backup for a user who asks for a sealed one.
func (f *backupFlags) validate(command string) error {
	switch sealed := len(f.recipients) > 0; {
	case f.check && (f.packed || sealed || f.single):
		return cli.Usagef(command, "--check recognizes packed and sealed backups: omit --packed and --recipient")
	case f.identity != "" && !f.check:
		return cli.Usagef(command, "--identity can be used only with --check, which reads a sealed backup: add --check")
	case sealed && !f.packed:
		return cli.Usagef(command, "only a packed backup can be sealed (encrypted): add --packed")
	}
	if err := seal.Enough(f.recipients, f.single, "backup"); err != nil {
		return cli.Usagef(command, "%w", err)
	}
	return nil
}

// checkBackup reads a backup from end to end.
func checkBackup(ctx context.Context, a *cli.App, path, identity string) error {
	unseal, err := seal.Identities(identity)
	if err != nil {
		return err
	}
	info, err := varve.CheckSealedBackup(ctx, resolveBackup(path), unseal)
	if err != nil {
		return unsound(a, err)
	}
	backedUp(a, "is sound", path, &info)
	return nil
}

// stdout is the path that means standard output.
const stdout = "-"

// resolveBackup returns the path of a backup that the user has named. If the path leads to a file through symbolic
// links, resolveBackup returns the path of that file.
func resolveBackup(path string) string {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
	}
	return path
}

// isBackups reports whether dir is inside the folder backups/ of the store.
func isBackups(dir, store string) bool {
	above, err := locate.Above(dir, func(dir string) bool { return dir == filepath.Join(store, "backups") })
	return err == nil && above != ""
}

// unsound prints every fault of a damaged backup except the last, and returns the last one with its remedy.
func unsound(a *cli.App, err error) error {
	const fix = "restore the undamaged part of the backup, or restore another backup; if the store still exists, " +
		"make a new backup: memctl backup DIR"
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

func backUp(ctx context.Context, a *cli.App, st *varve.Store, dir string, o varve.BackupOptions) error {
	var done func()
	o.Progress, done = a.Bar("backing up")
	to := dir
	if dir == stdout {
		to, o.Output = "", a.Out.Stream // a.Out escapes what a terminal would misread
	}
	info, err := st.Backup(ctx, to, o)
	done()
	if err != nil {
		return err
	}
	if dir == stdout {
		a.Note("the backup is complete: %s, %s; what was written to standard output was not read back: "+
			"memctl backup --check FILE does that", documents(info.Memories, info.Assemblies), cli.Size(info.Bytes))
		notBackedUp(a, &info)
		return nil
	}
	backedUp(a, "is complete", dir, &info)
	tellLeft(a, info.Left)
	return nil
}

// tellLeft prints the names of incomplete backups and restores that killed processes left behind and that could
// not be removed.
func tellLeft(a *cli.App, leftovers []string) {
	for _, l := range leftovers {
		a.Note("note: %s is left over from a killed memctl backup or restore", l)
	}
}

// savedMoment is the position and time of a commit, in the JSON output.
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

// documents returns the numbers of memories and assemblies as text, such as "3 memories and 1 assembly".
func documents(memories, assemblies int64) string {
	s := cli.Count(int(memories), "memory", "memories")
	if assemblies > 0 {
		s += ", " + cli.Count(int(assemblies), "assembly", "assemblies")
	}
	return s
}

// nounIn returns the noun for a document in a folder of the store, such as "memory" for memories.
func nounIn(folder string) string {
	if folder == "assemblies" {
		return "assembly"
	}
	return "memory"
}

func backedUp(a *cli.App, state, dir string, info *varve.BackupInfo) {
	s := savedBackup{dir, info.Store.String(), info.Made, info.Memories, info.Assemblies, info.Bytes,
		savedMoment{info.First.LSN, info.First.Time}, savedMoment{info.Last.LSN, info.Last.Time}, info.First.Time, info.Until,
		[]string{}}
	for _, d := range info.Damaged {
		s.Damaged = append(s.Damaged, d.ID)
	}
	if a.Document != nil {
		a.Document.Member("backup", s)
	} else {
		a.Say("%s %s: %s, %s", dir, state, documents(s.Memories, s.Assemblies), cli.Size(s.Bytes))
		a.Say("restore it with: memctl restore %s NEW-DIR", cli.ShellPath(dir))
		a.Say("memctl restore --at takes any moment from %s to %s; with --log STORE also later moments",
			s.From.Format(time.RFC3339Nano),
			s.To.Format(time.RFC3339Nano))
	}
	notBackedUp(a, info)
}

// notBackedUp reports the documents that could not be read and are not in the backup.
func notBackedUp(a *cli.App, info *varve.BackupInfo) {
	for _, d := range info.Damaged {
		a.Fail(cli.WithFix(fmt.Errorf("%s %s is not in the backup: %w: %s", nounIn(d.In), cli.PrintableID(d.ID),
			varve.ErrCorrupt, d.Why), "an older backup may contain this document; memctl verify describes the damage"))
	}
}
