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
	var sel selection
	var version uint64
	var now bool
	c := &cobra.Command{
		Use:   "purge ID...|-",
		Short: "Delete memories, assemblies or working memory and every trace of them",
		Long: `Delete memories (with --assembly assemblies, with --working scopes of working memory) and remove
every trace of them from the store's folder: files, all versions in the log and the archive, the
index and its backups, displaced files, and quarantine. A purge cannot be undone.

The bytes are overwritten before their last name is removed, except an index file that another
process has mapped, or any index file where the system cannot tell (every system except Linux):
that file is removed, and named. A file that another program has open, that has a second name (a
hard link) or that may not be written is named with a remedy; everything else is purged, and the
exit status is not 0. Damaged bytes in the log, the archive and backups of the index may be a part of
what is purged: they are overwritten as well, and what the history lost with them is named.

Other memories keep their history, except for the versions of assemblies that had a purged
memory: a composite is computed from its members. The members of a purged assembly are not
changed. Entries of working memory are removed from the log where they have 24 bytes or more of
the text of a purged memory; a scope that still has them is named and kept: purge it with
--working. In a piece of the log in quarantine, the sound entries of other memories are kept; a
piece with bytes whose owner is unknown, such as the end of a write that a power cut tore, is
named: remove it when you need nothing of it. An index or an archived segment there is removed as
a whole. Your own files in the folder are searched, up to 64 MiB each: those that contain part of
what was purged are named and kept.

Other processes may use the store meanwhile. During a backup, purge does not wait but ends with
exit status 11. It may be interrupted and run again, also for ids that are already deleted. Not
covered are backups elsewhere, the history of git, and overwritten bytes that a device keeps:
delete old backups and make a new one.

Purge cannot reach what was removed before it ran: the bytes of versions that were replaced or
deleted earlier, and of segments of the log, archived segments and states of the index that were
released, may persist in free blocks of the file system, and file names in its folders and its
journal, until these are used again. Where overwriting a file writes to new blocks (btrfs, zfs,
bcachefs, f2fs, apfs), this applies to all purged bytes, and purge says so; snapshots, files that
share their blocks (cp --reflink) and the spare blocks of an SSD keep them as well. Remedies:
fstrim, deleting snapshots, a balance on btrfs, and from the start an encrypted file system whose
key can be destroyed.

--session, --where and --by choose memories as memctl list does, and - reads ids from standard input,
one per line. All are purged together, which costs no more for the log, the archive and the index than
the purge of one memory. With --session or --by, and without --where, a deleted memory is purged too if
the log or the archive has a version of it in the session or by the writer. The selected memories are
counted first; without a terminal or --yes, nothing else is done.

--version redacts one version of a memory, and the rest of the memory stays: history shows the version
as redacted, with its time and writer and those of the redaction, and no command shows its content any
more. The version must not be the current one: first update or delete the memory. Versions with the same
text stay, and are named. The bytes are overwritten at once if no other process has the store open, or
with --now; otherwise another process overwrites them within about a minute, many redactions together.
memctl status counts the versions that are not overwritten yet, and a backup overwrites them first.

A copy elsewhere (memctl remote) is purged within a day by the process that sends, together with later
purges, or with --now before the command ends; --now without ids does this for earlier purges.
The log of the store is sent again without the purged data, and snapshots of the copy that contain the
data are removed. Before the confirmation, purge prints which moments can no longer be cloned. Versions
of objects that a bucket keeps, and backups of a database, are not covered.

A purge lasts: the store keeps a digest of each purged id with the purged versions, and a restore leaves
these versions out. Files with a purged text are not adopted when they come back, and imports refuse the
text; after memctl config set block_purged true, put and the tool remember refuse it too. memctl put
--force-purged stores such a text nevertheless. A clone by git, and an index rebuilt without wal/, have
no record of what was purged.

On a terminal purge asks for confirmation; elsewhere it requires --yes. Where purge asks, the end of an
id that memctl list shows is enough; with --yes the id must be whole. With several ids, nothing is purged
if the store has no trace of one of them, because that id may be mistyped (exit status 4).`,
		Example: "  memctl purge notes\n  memctl purge notes draft --yes --json\n  memctl purge --assembly project-x\n  " +
			"memctl purge --working session:s1\n  memctl purge --session s1 --yes\n  " +
			"memctl list --where source=leak --limit 0 --output id | memctl purge - --yes",
		Args: sel.arguments(&now, "the id of a memory, or with --assembly of an assembly, or with --working a scope"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("version") {
				if sel.given(cmd, args) || scopes || len(args) != 1 {
					return cli.Usagef(cmd.CommandPath(),
						"--version takes the id of exactly one memory, or with --assembly of exactly one assembly")
				}
				return a.With(cmd.Context(), cli.Write, func(st *varve.Store) error {
					if err := purgeVersion(cmd, a, st, groups, args[0], version, now, yes); err != nil {
						return err
					}
					return endVersion(cmd.Context(), a, st, now)
				})
			}
			if now && len(args) == 0 && !sel.flags(cmd) {
				return a.With(cmd.Context(), cli.Write, func(st *varve.Store) error {
					return purgeCopy(cmd.Context(), a, st)
				})
			}
			if sel.given(cmd, args) {
				if groups || scopes {
					return cli.Usagef(cmd.CommandPath(), "--session, --where, --by and - choose memories, not --assembly or --working")
				}
				return cli.Resumable(a.With(cmd.Context(), cli.Write, func(st *varve.Store) error {
					return purgeSelected(cmd, a, st, &sel, now, yes)
				}), repeatable)
			}
			if _, ok := cli.Terminal(a.In); !ok && !yes {
				return cli.Usagef(cmd.CommandPath(),
					"nothing was purged: a purge cannot be undone, and without a terminal it needs --yes")
			}
			if groups && scopes {
				return cli.Usagef(cmd.CommandPath(), "purge accepts --assembly or --working, not both")
			}
			if scopes {
				var err error
				if args, err = scopeArguments(cmd, args); err != nil {
					return err
				}
			}
			err := a.With(cmd.Context(), cli.Write, func(st *varve.Store) error {
				unknown, purge := st.Admin().Unknown, st.Admin().Purge
				if groups {
					unknown, purge = st.Assemblies().Unknown, st.Assemblies().Purge
				}
				if scopes {
					unknown, purge = unknownScopes(st), purgeScopes(st)
				}
				if !scopes {
					var err error
					if args, err = wholeIDs(cmd.Context(), a, st, groups, yes, unknown, args); err != nil {
						return err
					}
				}
				if err := allKnown(cmd.Context(), unknown, args); err != nil {
					return err
				}
				if !groups && !scopes {
					mcpcmd.MarkGoes(cmd.Context(), a, st, args)
				}
				memories, assemblies := args, []string(nil)
				if groups {
					memories, assemblies = nil, args
				} else if scopes {
					memories = nil
				}
				elsewhere := aboutCopy(cmd.Context(), a, st, memories, assemblies)
				if err := confirmPurge(cmd.Context(), a, args, yes); err != nil {
					return err
				}
				r, err := purge(cmd.Context(), args...)
				err = tellResult(a, args, r, err)
				return elsewhere.end(cmd.Context(), now, err)
			})
			return cli.Resumable(err, repeatable)
		}),
	}
	sel.add(c)
	c.Flags().Uint64Var(&version, "version", 0,
		"remove only this `version`: an earlier one, or one of a deleted memory")
	c.Flags().BoolVar(&now, "now", false, "purge the copy elsewhere, too, and with --version overwrite the bytes of "+
		"the version, before the command ends")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	c.Flags().BoolVar(&scopes, "working", false, "the arguments are scopes of working memory")
	c.Flags().BoolVar(&groups, "assembly", false, "the ids are ids of assemblies")
	return c
}

const repeatable = "a purge may be repeated until it is complete"

// tellResult prints what a purge did, and which data it left.
func tellResult(a *cli.App, ids []string, r *varve.PurgeReport, err error) error {
	if r == nil {
		return err
	}
	tellPurged(a, ids, r, err == nil)
	if len(r.Left) == 0 {
		return err
	}
	for _, left := range r.Left {
		var u *vfs.UnwipedError
		if errors.As(left, &u) {
			left = cli.WithFix(notWiped{u}, u.Help())
		}
		var piece *varve.CorruptionError
		if errors.As(left, &piece) && (strings.HasPrefix(piece.Path, "quarantine/") ||
			strings.HasPrefix(piece.Path, "tmp/parked/")) {
			fix := "inspect this file before you remove it: the file may contain the only copy of another memory"
			if len(r.Deleted)+len(r.TakenOut)+r.Frames+len(r.Removed)+r.Backups+r.Dropped == 0 {
				fix = "no data was found that certainly belongs to " + cli.PrintableID(ids[0]) +
					": check the id before you remove anything"
			}
			left = cli.WithFix(left, fix)
		}
		a.Fail(left)
	}
	return nil
}

// notWiped is an UnwipedError for a file that was not overwritten. Its text omits the remedy.
type notWiped struct{ *vfs.UnwipedError }

func (e notWiped) Error() string { return e.What() }

var errUnconfirmed = errors.New("nothing was purged")

// unknownShown is the maximum number of unknown ids that one error lists.
const unknownShown = 10

// allKnown returns an error if there are several ids and the store has no trace of one of them: that id may be
// mistyped. A single id is always accepted, because its purge searches the whole store.
func allKnown(ctx context.Context, unknownOf func(context.Context, ...string) ([]string, error), ids []string) error {
	if len(ids) < 2 {
		return nil
	}
	unknown, err := unknownOf(ctx, ids...)
	if err != nil || len(unknown) == 0 {
		return err
	}
	more := ""
	if n := len(unknown) - unknownShown; n > 0 {
		unknown, more = unknown[:unknownShown], fmt.Sprintf(" and %d more", n)
	}
	for i, id := range unknown {
		unknown[i] = cli.PrintableID(id)
	}
	return cli.WithFix(fmt.Errorf("%w: the store has no trace of %s%s: %w", varve.ErrNotFound,
		strings.Join(unknown, ", "), more, errUnconfirmed),
		"correct the ids; to search the whole store for one of these ids, purge that id alone")
}

// confirmPurge asks the user to confirm that the memories with these ids are purged, unless yes is true.
func confirmPurge(ctx context.Context, a *cli.App, ids []string, yes bool) error {
	if yes {
		return nil
	}
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = cli.PrintableID(id)
	}
	return Confirm(ctx, a, fmt.Sprintf("Every version of %s will be removed. This cannot be undone.",
		strings.Join(list, ", ")),
		fmt.Errorf("%w: the purge was not confirmed: %w", varve.ErrInvalid, errUnconfirmed))
}

// Confirm prints warning, and asks the user on a terminal to type yes. If the answer is yes, Confirm returns nil,
// otherwise the error refused.
func Confirm(ctx context.Context, a *cli.App, warning string, refused error) error {
	fmt.Fprintf(a.ErrOut, "%s Type yes to continue: ", warning)
	answer, err := cli.Await(ctx, func() ([]byte, error) {
		s, err := bufio.NewReader(a.In).ReadString('\n')
		return []byte(s), err
	})
	if err != nil && len(answer) == 0 || strings.TrimSpace(string(answer)) != "yes" {
		return refused
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
		d.Member("lost", texts(r.Lost))
		d.Member("removed", orEmpty(r.Removed))
		mentions := make([]mention, len(r.Mentions))
		for i, m := range r.Mentions {
			mentions[i] = mention{m.Path, m.How}
		}
		d.Member("mentioned", mentions)
		d.Member("not_overwritten", orEmpty(r.Unlinked))
		d.Member("left", texts(r.Left))
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
			rest = "the files named below were not purged"
		}
		a.Say("purged: %s in the archive, %s, %s set aside; %s",
			cli.Count(int(r.Frames), "version or deletion", "versions and deletions"),
			cli.Count(r.Backups+r.Dropped, "index backup", "index backups"), cli.Count(len(r.Removed), "file", "files"), rest)
	}
	for _, lost := range r.Lost {
		a.Note("damaged data was overwritten, because it could not be read: %v", lost)
	}
	for _, id := range r.TakenOut {
		a.Note("removed the id of a purged memory, which was already missing, from the members of assembly %s",
			cli.PrintableID(id))
	}
	for _, m := range r.Mentions {
		if strings.HasPrefix(m.Path, "working/") {
			a.Note("%s %s; this scope of working memory was not purged and is kept: inspect it, then use memctl working rm or "+
				"memctl purge --working", m.Path, m.How)
			continue
		}
		a.Note("%s %s; this file is not part of the purged memories and is kept: inspect the file, and remove it "+
			"yourself if necessary", m.Path, m.How)
	}
	for _, name := range r.Unlinked {
		a.Note("the old file %s was removed, but not overwritten: another process has the file mapped, or the system "+
			"cannot tell; the blocks of the file are freed when that process reads the store again", name)
	}
	for _, name := range r.Backup {
		a.Note("%s contains old states of the store, and was not purged", name)
	}
	if complete && len(r.Backup) == 0 {
		a.Note("backups outside the store's folder were not purged")
	}
	if r.Device != "" {
		a.Note("%s", r.Device)
	}
	if complete {
		a.Note("files that were removed before this purge, of versions replaced or deleted earlier, may persist in " +
			"free blocks of the file system: memctl purge --help describes what you can do")
	}
	if len(r.Processes)+len(r.Elsewhere) > 0 {
		a.Note("processes %s have the store open, and may have purged data in memory until they read the store again",
			running(r.Processes, r.Elsewhere))
	}
}

// mention is a file of the user that contains a part of a purged memory, in the JSON document of purge.
type mention struct {
	Path string `json:"path"`
	How  string `json:"how"`
}

// texts returns the messages of some errors.
func texts(list []error) []string {
	texts := make([]string, len(list))
	for i, err := range list {
		texts[i] = err.Error()
	}
	return texts
}

// orEmpty returns names, or an empty list instead of nil, so that JSON has [] and not null.
func orEmpty(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}
