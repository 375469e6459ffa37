package upkeep

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/mcpcmd"
	"github.com/varve-db/varve/internal/vfs"
)

func Purge(a *cli.App) *cobra.Command {
	var yes, groups, scopes bool
	c := &cobra.Command{
		Use:   "purge ID...",
		Short: "Delete memories, assemblies or working memory, and every trace of them",
		Long: `Delete memories, or with --assembly assemblies, or with --working scopes of working memory, and
take every trace of them out of the store's folder: files, all versions
in log and archive, index and its backups, displaced files, and quarantine. What was
there is overwritten before its last name goes, except an index file that another process has
mapped, or where the system cannot tell (all but Linux): that is removed, and named. A file that
another program has open, that has a second name (a hard link) or may not be written is named
with what helps; the rest goes, and the exit status is not 0. It cannot be undone.
Others keep their history, except for the versions of assemblies that had a purged memory: a
composite is made of its members. The members of a purged assembly stay as they are.
What the log has of working memory goes where it has 24 bytes or more of what a purged memory
said; a scope that still has them is named, and stays: purge it with --working. Of a piece of the log in quarantine the sound entries of
others stay; an index or an archived segment there goes as a whole. Your own files in the folder are looked through, up to 64 MiB each:
those that have something of it are named, and stay.

Others may go on using the store; while a backup is being made it waits for nobody and ends with
exit status 11. It may be interrupted, and run again, also for what is deleted already. Not
covered are backups elsewhere, git's history, and what a device keeps of overwritten bytes:
delete old backups and make a new one.

What was removed before the purge it cannot reach: the bytes of versions that were replaced or
deleted earlier, of segments of the log, archived ones and states of the index that were let go,
may persist in blocks of the file system that are free now, and the names of files in its folders and
its journal, until they are used again. Where overwriting a file writes to new blocks (btrfs, zfs,
bcachefs, f2fs, apfs) that holds of all of it, and purge says so; snapshots, files that share
their blocks (cp --reflink) and the spare blocks of an SSD keep it as well. What helps: fstrim,
deleting snapshots, a balance on btrfs, and from the start an encrypted file system whose key
can be destroyed.

On a terminal it asks before; elsewhere it wants --yes. Of several ids none is purged when
there is nothing of one of them, which may be mistyped (exit status 4).`,
		Example: "  memctl purge notes\n  memctl purge notes draft --yes --json\n  memctl purge --assembly project-x\n  memctl purge --working session:s1",
		Args:    cli.AtLeastOne("the id of a memory, or with --assembly of an assembly, or with --working a scope"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			if _, ok := cli.Terminal(a.In); !ok && !yes {
				return cli.Usagef(cmd.CommandPath(), "nothing was purged: it cannot be undone, and without a terminal nobody can be asked: give --yes")
			}
			if groups && scopes {
				return cli.Usagef(cmd.CommandPath(), "purge takes --assembly or --working, not both")
			}
			if scopes {
				var err error
				if args, err = scopeArguments(cmd, args); err != nil {
					return err
				}
			}
			return a.With(cmd.Context(), cli.Write, func(st *varve.Store) error {
				unknown, purge := st.Admin().Unknown, st.Admin().Purge
				if groups {
					unknown, purge = st.Assemblies().Unknown, st.Assemblies().Purge
				}
				if scopes {
					unknown, purge = unknownScopes(st), purgeScopes(st)
				}
				if err := allKnown(cmd.Context(), unknown, args); err != nil {
					return err
				}
				if !groups && !scopes {
					mcpcmd.MarkGoes(cmd.Context(), a, st, args)
				}
				if err := confirmPurge(cmd.Context(), a, args, yes); err != nil {
					return err
				}
				r, err := purge(cmd.Context(), args...)
				if r == nil {
					return err
				}
				tellPurged(a, args, r, err == nil)
				if len(r.Left) == 0 {
					return err
				}
				for _, left := range r.Left {
					var u *vfs.UnwipedError
					if errors.As(left, &u) {
						left = cli.WithFix(notWiped{u}, u.Help())
					}
					a.Fail(left)
				}
				return nil
			})
		}),
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&scopes, "working", false, "the ids are scopes of working memory")
	c.Flags().BoolVar(&groups, "assembly", false, "the ids are those of assemblies")
	return c
}

// notWiped is a file that was not overwritten, without what helps.
type notWiped struct{ *vfs.UnwipedError }

func (e notWiped) Error() string { return e.What() }

var errUnconfirmed = errors.New("nothing was purged")

// allKnown refuses several ids when there is nothing of one: it may be mistyped.
// A single one is looked for everywhere.
func allKnown(ctx context.Context, unknownOf func(context.Context, ...string) ([]string, error), ids []string) error {
	if len(ids) < 2 {
		return nil
	}
	unknown, err := unknownOf(ctx, ids...)
	if err != nil || len(unknown) == 0 {
		return err
	}
	for i, id := range unknown {
		unknown[i] = cli.PrintableID(id)
	}
	return cli.WithFix(fmt.Errorf("%w: there is nothing of %s in the store: %w", varve.ErrNotFound, strings.Join(unknown, ", "), errUnconfirmed),
		"correct the ids; one that is named alone is looked for in every corner all the same")
}

// confirmPurge asks, on a terminal.
func confirmPurge(ctx context.Context, a *cli.App, ids []string, yes bool) error {
	if yes {
		return nil
	}
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = cli.PrintableID(id)
	}
	fmt.Fprintf(a.ErrOut, "Every version of %s goes, and nothing can bring it back. Type yes: ", strings.Join(list, ", "))
	answer, err := cli.Await(ctx, func() ([]byte, error) {
		s, err := bufio.NewReader(a.In).ReadString('\n')
		return []byte(s), err
	})
	if err != nil && len(answer) == 0 || strings.TrimSpace(string(answer)) != "yes" {
		return fmt.Errorf("%w: it was not confirmed: %w", varve.ErrInvalid, errUnconfirmed)
	}
	return nil
}

func tellPurged(a *cli.App, ids []string, r *varve.PurgeReport, complete bool) {
	if d := a.Document; d != nil {
		d.Member("purged", ids)
		d.Member("complete", complete)
		d.Member("deleted", orEmpty(r.Deleted))
		d.Member("taken_out_of", orEmpty(r.TakenOut))
		d.Member("frames", r.Frames)
		d.Member("segments", r.Segments)
		d.Member("copies", r.Copies)
		d.Member("index_backups", r.Backups+r.Dropped)
		d.Member("removed", orEmpty(r.Removed))
		mentions := make([]mention, len(r.Mentions))
		for i, m := range r.Mentions {
			mentions[i] = mention{m.Path, m.How}
		}
		d.Member("mentioned", mentions)
		d.Member("not_overwritten", orEmpty(r.Unlinked))
		left := make([]string, len(r.Left))
		for i, err := range r.Left {
			left[i] = err.Error()
		}
		d.Member("left", left)
		d.Member("device", r.Device)
		d.Member("not_covered", orEmpty(r.Backup))
		return
	}
	if complete {
		rest := "no trace is left in the store's own files"
		switch {
		case len(r.Unlinked) > 0:
			rest = cli.Count(len(r.Unlinked), "file", "files") + " could not be overwritten"
		case len(r.Backup) > 0:
			rest = "what follows was not looked into"
		}
		a.Say("purged: %d versions and deletions in the archive, %d index backups, %d things set aside; %s",
			r.Frames, r.Backups+r.Dropped, len(r.Removed), rest)
	}
	for _, id := range r.TakenOut {
		a.Note("assembly %s named a memory that is not there, and does no more", cli.PrintableID(id))
	}
	for _, m := range r.Mentions {
		if strings.HasPrefix(m.Path, "working/") {
			a.Note("%s %s: that scope of working memory is not what was purged, and stays: look into it, then memctl working rm, or memctl purge --working", m.Path, m.How)
			continue
		}
		a.Note("%s %s, and is not the file of what was purged: it stays: look into it, and remove it yourself if it is to go", m.Path, m.How)
	}
	for _, name := range r.Unlinked {
		a.Note("%s as it was is removed, but could not be overwritten: another process has it mapped, or the system does not tell; the disk frees it when that one reads on", name)
	}
	for _, name := range r.Backup {
		a.Note("%s keeps old states, and was not touched: what is in it is not purged", name)
	}
	if complete && len(r.Backup) == 0 {
		a.Note("backups outside the store's folder are not covered")
	}
	if r.Device != "" {
		a.Note("%s", r.Device)
	}
	if complete {
		a.Note("files that were removed before this purge, of versions replaced or deleted earlier, may persist in free blocks of the file system: memctl purge --help says what helps")
	}
	if len(r.Processes) > 0 {
		a.Note("processes %v have the store open, and may have some of it in memory until they read on", r.Processes)
	}
}

// mention is a file of the user's in purge's document.
type mention struct {
	Path string `json:"path"`
	How  string `json:"how"`
}

// orEmpty is an empty array rather than null.
func orEmpty(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}
