package notecmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/text/unicode/norm"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/adopted"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/note"
	"github.com/varve-db/varve/internal/vfs"
)

func adoptCommand(a *cli.App) *cobra.Command {
	var as string
	c := &cobra.Command{
		Use:   "adopt DIR",
		Short: "Turn a folder outside the store into a folder of notes",
		Long: `Move the content of a folder into the store, as the folder notes/NAME, and make the folder a link to it.
Programs that use the folder notice no difference, and each version of a file that they write is kept while
a process watches: memctl watch --adopt, memctl mcp, or the service of memctl service install.

The folder has to be on the file system of the store. Nothing is copied, and the files stay the same. Files
that cannot be notes (with names that begin with a dot, over 16 MiB, links) move too, and get no history.

If the command is interrupted, the same command completes it. If another program has replaced the link by a
folder, its files become the newest versions of the notes, it is renamed, and the link is made again. memctl
note release undoes the adoption, and memctl status shows the folders that are adopted.`,
		Example: "  memctl note adopt ~/vault\n" +
			"  memctl note adopt ~/.claude/projects/-home-ada-app/memory --as claude/app",
		Args: cli.Exactly(1, "a folder"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			if as = folderOf(as); as != "" {
				if err := note.CheckPath(as); err != nil {
					return cli.Usagef(cmd.CommandPath(), "--as: %w", err)
				}
			}
			return adoption(a, func(st *varve.Store, ad *adopting) (adoptReport, error) {
				return ad.adopt(cmd.Context(), st, args[0], as)
			}, "adopted %s as notes/%s: %s")(cmd, args)
		}),
	}
	c.Flags().StringVar(&as, "as", "", "the `folder` of notes; the name of DIR by default")
	return c
}

func releaseCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "release DIR",
		Short: "Make an adopted folder an ordinary one again",
		Long: `Move an adopted folder out of the store, back to the path at which memctl note adopt found it. The notes
are deleted in the store; their versions stay in the history. If the command is interrupted, the same
command completes it.`,
		Example: "  memctl note release ~/vault",
		Args:    cli.Exactly(1, "a folder"),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			return adoption(a, func(st *varve.Store, ad *adopting) (adoptReport, error) {
				return ad.release(cmd.Context(), st, args[0])
			}, "released %s, which was notes/%s: %s")(cmd, args)
		}),
	}
}

// adoptReport is the JSON output of note adopt and note release.
type adoptReport struct {
	Dir    string `json:"dir"`
	Folder string `json:"folder"`
	Notes  int    `json:"notes"`           // number of notes that were adopted or released
	Aside  string `json:"aside,omitempty"` // new path of the folder that had replaced the link, which was renamed
	Others int    `json:"others"`          // number of files and links in the folder that cannot be notes

	other string // the first of Others, with the reason
}

func adoption(a *cli.App, f func(*varve.Store, *adopting) (adoptReport, error),
	format string) func(cmd *cobra.Command, args []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		dir, err := a.Locate()
		if err != nil {
			return err
		}
		quiet := func(o *varve.Options) { // the files are counted; each of them is not worth a line
			others := o.Listener
			o.Listener = func(e varve.Event) {
				if e.Kind != varve.EventAdopted {
					others(e)
				}
			}
		}
		return a.WithIn(cmd.Context(), dir, cli.Write, quiet, func(st *varve.Store) error {
			folders, err := adopted.Of(dir)
			if err != nil {
				return err
			}
			r, err := f(st, &adopting{folders: folders, clock: a.Clock, step: func(string) {},
				exchange: vfs.OS().Exchange})
			if err != nil {
				return err
			}
			if a.Document != nil {
				a.Document.All(r)
				return nil
			}
			a.Say(format, cli.Printable(r.Dir), cli.Printable(r.Folder), cli.Count(r.Notes, "note", "notes"))
			if r.Others > 0 {
				a.Note("%s cannot be notes and get no history; the first is %s; memctl status --json lists them all",
					cli.Count(r.Others, "entry", "entries"), cli.Printable(r.other))
			}
			if r.Aside != "" {
				a.Say("a folder had replaced the link; that folder is now named %s", cli.Printable(r.Aside))
			}
			if watcher := st.Admin().Stats().Watcher; watcher == 0 && strings.HasPrefix(format, "adopted") {
				a.Note("no process watches the store: memctl service install starts a service that adopts edits of " +
					"its files")
			}
			return nil
		})
	}
}

// adopting moves folders from elsewhere into a store as folders of notes, and moves them out again.
type adopting struct {
	folders *adopted.Folders
	clock   func() time.Time
	step    func(name string) // called with the name of each step when it is done; tests stop there
	// exchange exchanges the files at two paths atomically. It returns errors.ErrUnsupported where the system
	// cannot.
	exchange func(a, b string) error
}

func refuse(fix, format string, args ...any) error {
	return cli.WithFix(fmt.Errorf("%w: %w", varve.ErrInvalid, fmt.Errorf(format, args...)), fix)
}

// adopt moves the folder dir into the store as a folder of notes, and makes dir a link to it.
func (ad *adopting) adopt(ctx context.Context, st *varve.Store, dir, folder string) (r adoptReport, err error) {
	link, err := adopted.LinkPath(dir)
	if err != nil {
		return r, refuse("give the path of a folder", "the folder to adopt: %w", err)
	}
	was, known, err := ad.folders.Find(link)
	if err != nil {
		return r, err
	}
	switch {
	case known && folder != "" && folder != was.Folder:
		return r, refuse("memctl note release "+cli.ShellQuote(dir)+" undoes that",
			"%s is already adopted, as notes/%s", link, was.Folder)
	case known:
		folder = was.Folder
	case folder == "":
		folder = norm.NFC.String(filepath.Base(link))
		if err := note.CheckPath(folder); err != nil {
			return r, cli.WithFix(err, "--as NAME gives the folder of notes another name")
		}
	}
	if was.State == adopted.Releasing {
		return r, refuse("memctl note release "+cli.ShellQuote(dir)+" completes it",
			"the release of %s was interrupted", link)
	}
	r = adoptReport{Dir: link, Folder: folder}
	target := ad.folders.Target(folder)
	if err := ad.within(target); err != nil {
		return r, err
	}
	if was.State == adopted.Adopted && !ad.isFolder(target) {
		if err := ad.restoreFolder(ctx, st, folder); err != nil {
			return r, err
		}
	}
	info, err := os.Lstat(link)
	switch {
	case err == nil && ad.folders.LeadsTo(link, folder) && ad.isFolder(target):
		// adopted, or interrupted before the end
	case known && ad.isFolder(target) &&
		(errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink != 0):
		err = ad.relink(link, target)
		ad.step("linked")
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return r, refuse("give the path of the folder to which the link leads", "%s is a link", link)
	case err != nil:
		return r, refuse("give the path of a folder", "the folder to adopt: %w", err)
	case !info.IsDir():
		return r, refuse("give the path of a folder", "%s is %s, not a folder", link, vfs.KindOf(info.Mode()))
	case known && ad.isFolder(target):
		r.Aside, err = ad.takeIn(ctx, st, link, folder)
	default:
		err = ad.place(ctx, st, link, folder)
	}
	if err != nil {
		return r, err
	}
	if _, err = st.Notes().AdoptFiles(ctx, folder); err != nil {
		return r, err
	}
	ad.step("files")
	for _, err := range st.Notes().List(ctx, folder, 0) {
		if err != nil {
			return r, err
		}
		r.Notes++
	}
	if r.Others, r.other, err = ad.countUnfit(link, folder); err != nil {
		return r, err
	}
	return r, ad.record(link, folder, adopted.Adopted)
}

// restoredWithin is the maximum time that restoreFolder waits for the files of an adopted folder that has vanished.
// The store restores missing files when a note is read, but only if nothing has changed in the folders of notes for
// two seconds.
const restoredWithin = 10 * time.Second

// restoreFolder restores an adopted folder that has vanished from the store. If the folder has notes,
// restoreFolder waits until the store has restored the files of these notes. Otherwise restoreFolder creates the
// folder. If anything else is at the path of the folder, restoreFolder changes nothing.
func (ad *adopting) restoreFolder(ctx context.Context, st *varve.Store, folder string) error {
	target := ad.folders.Target(folder)
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		return err // something else is in its place
	}
	for end := time.Now().Add(restoredWithin); ; {
		path := ""
		for e, err := range st.Notes().List(ctx, folder, 0) {
			if err != nil {
				return err
			}
			path = e.Path
			break
		}
		if path == "" {
			return vfs.MkdirAll(vfs.Below(vfs.OS(), ad.folders.Store()), target, 0o700)
		}
		if _, err := st.Notes().Read(ctx, path); err != nil && !errors.Is(err, varve.ErrNotFound) {
			return err
		}
		if ad.isFolder(target) {
			return nil
		}
		if time.Now().After(end) {
			return refuse("repeat the command", "notes/%s is missing, and its files are not restored yet", folder)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// countUnfit returns the number of files in an adopted folder that cannot be notes. first is the path of the first
// of these files, with the reason.
func (ad *adopting) countUnfit(link, folder string) (n int, first string, err error) {
	r := newReading(link, folder, false, newMoved("", ""), ad.clock)
	r.visit = func(file, _ string) error {
		if info, err := r.fs.Stat(r.file(file)); err == nil && info.Size > note.MostBytes {
			r.report.problem(file, kindTooLarge, fmt.Sprintf("the file has %d bytes, but a note has at most %d",
				info.Size, note.MostBytes))
		}
		return nil
	}
	if err := r.folder(""); err != nil {
		return 0, "", err
	}
	if len(r.report.Problems) > 0 {
		first = r.report.Problems[0].Path + ": " + r.report.Problems[0].Reason
	}
	return r.report.Refused, first, nil
}

func (ad *adopting) record(link, folder, state string) error {
	return ad.recordAt(link, folder, state, ad.clock().UTC())
}

func (ad *adopting) recordAt(link, folder, state string, at time.Time) error {
	err := ad.folders.Add(adopted.Entry{Link: link, Folder: folder, State: state, Time: at})
	ad.step(state)
	return err
}

// within returns an error if one of the folders on the path target inside the store is a symbolic link. A store that
// was copied from elsewhere may contain a link that leads out of the store.
func (ad *adopting) within(target string) error {
	for dir := filepath.Dir(target); dir != ad.folders.Store(); dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			err = &vfs.NotFolderError{Path: dir, Mode: info.Mode()}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) { // a note: see check
			return err
		}
	}
	return nil
}

func (ad *adopting) isFolder(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.IsDir()
}

// isSelf reports whether the path is a symbolic link to itself. The method place creates such a link, and then
// exchanges the link with the folder to be adopted.
func isSelf(name string) bool {
	to, err := os.Readlink(name)
	return err == nil && to == name
}

// place moves the folder at the path link into the store, and creates at the path link a symbolic link to the moved
// folder.
func (ad *adopting) place(ctx context.Context, st *varve.Store, link, folder string) error {
	target := ad.folders.Target(folder)
	if err := ad.check(ctx, st, link, folder); err != nil {
		return err
	}
	if err := ad.record(link, folder, adopted.Adopting); err != nil {
		return err
	}
	files := vfs.OS()
	if err := vfs.MkdirAll(vfs.Below(files, ad.folders.Store()), filepath.Dir(target), 0o700); err != nil {
		return err
	}
	ad.step("parents")
	// The link is made at the other place, where it leads to itself, and changes places with the folder: at no moment
	// is there nothing at the path of the folder.
	if !isSelf(target) {
		if err := os.Symlink(target, target); err != nil {
			return ad.undo(link, folder, err)
		}
	}
	ad.step("link")
	err := ad.exchange(link, target)
	if errors.Is(err, errors.ErrUnsupported) {
		if err = os.Remove(target); err == nil {
			if err = os.Rename(link, target); err == nil {
				ad.step("moved")
				err = os.Symlink(target, link)
			}
		}
	}
	if err != nil {
		return ad.undo(link, folder, fmt.Errorf("moving %s into the store: %w", link, err))
	}
	ad.step("exchanged")
	return errors.Join(files.SyncDir(filepath.Dir(link)), files.SyncDir(filepath.Dir(target)))
}

// undo removes what the method place has created, if place could not move the folder. err is the error of place; undo
// returns this error.
func (ad *adopting) undo(link, folder string, err error) error {
	if target := ad.folders.Target(folder); isSelf(target) && ad.isFolder(link) {
		_ = os.Remove(target)
		_ = ad.record(link, folder, adopted.Released)
	}
	return err
}

// check returns an error if the folder at the path link cannot become a folder of notes.
func (ad *adopting) check(ctx context.Context, st *varve.Store, link, folder string) error {
	store, target := ad.folders.Store(), ad.folders.Target(folder)
	switch {
	case inside(link, store):
		return refuse("give the path of a folder outside the store", "%s is inside the store", link)
	case inside(store, link):
		return refuse("move the store, or adopt a folder beside it", "the store %s is in %s", store, link)
	case cli.IsStore(link):
		return refuse("give the path of a folder with text files", "%s is a store", link)
	}
	files := vfs.OS()
	here, err := files.Stat(store)
	if err != nil {
		return err
	}
	parent, err := files.Stat(filepath.Dir(link))
	if err != nil {
		return err
	}
	switch its, err := files.Stat(link); {
	case err != nil:
		return err
	case its.Dev != parent.Dev:
		return refuse("adopt a folder below it", "%s is the root of a file system, which cannot be moved", link)
	case its.Dev != here.Dev:
		return refuse("memctl migrate --to DIR moves the store to that file system; or memctl note import copies "+
			"the files",
			"%s is on another file system than the store: a folder cannot be moved to another file system in one "+
				"step", link)
	}
	if _, err := os.Lstat(target); err == nil && !isSelf(target) ||
		err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return refuse("--as NAME gives the folder of notes another name", "notes/%s exists in the store", folder)
	}
	for at := folder; at != "."; at = path.Dir(at) {
		if _, err := st.Notes().Read(ctx, at); err == nil {
			return refuse("--as NAME gives the folder of notes another name", "%s is a note of the store", at)
		}
	}
	for _, err := range st.Notes().List(ctx, folder, 1) {
		if err != nil {
			return err
		}
		return refuse("--as NAME gives the folder of notes another name", "the store has notes in the folder %s", folder)
	}
	return nil
}

// inside reports whether the path name is the folder dir or is inside it.
func inside(name, dir string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}

// relink puts a link to a folder of notes at the path link, and replaces another link there.
func (ad *adopting) relink(link, target string) error {
	temp := filepath.Join(filepath.Dir(link), fmt.Sprintf(".varve-adopt-%d", os.Getpid()))
	_ = os.Remove(temp)
	err := os.Symlink(target, temp)
	if err == nil {
		err = os.Rename(temp, link)
	}
	if err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("making %s a link: %w", link, err)
	}
	return vfs.OS().SyncDir(filepath.Dir(link))
}

// takeIn is called if a folder has replaced the link to an adopted folder. It stores the files in that folder as the
// newest versions of the notes, renames the folder to the path aside, and creates the link again.
func (ad *adopting) takeIn(ctx context.Context, st *varve.Store, link, folder string) (aside string, err error) {
	if _, err := st.Notes().AdoptFiles(ctx, folder); err != nil {
		return "", err
	}
	report := newMoved(link, folder)
	err = importInto(ctx, st, newReading(link, folder, false, newMoved("", ""), ad.clock), true, report, func(int) {})
	if err == nil && report.Kept+report.Refused > 0 {
		p := report.Problems[0]
		err = refuse("correct the problem, then repeat the command", "%s has %s that cannot become notes; the first "+
			"is %s: %s",
			link, cli.Count(report.Kept+report.Refused, "file", "files"), p.Path, p.Reason)
	}
	if err == nil { // the link is to lead to these files
		err = st.Flush(ctx)
	}
	if err != nil {
		return "", err
	}
	ad.step("taken in")
	target := ad.folders.Target(folder)
	for n := 1; ; n++ {
		aside = fmt.Sprintf("%s.replaced-%d", link, n)
		if err = os.Symlink(target, aside); !errors.Is(err, fs.ErrExist) {
			break
		}
		if ad.folders.LeadsTo(aside, folder) { // of a command that was interrupted
			err = nil
			break
		}
	}
	if err != nil {
		return "", err
	}
	ad.step("link")
	if err = ad.exchange(link, aside); errors.Is(err, errors.ErrUnsupported) {
		if err = os.Remove(aside); err == nil {
			if err = os.Rename(link, aside); err == nil {
				ad.step("moved")
				err = os.Symlink(target, link)
			}
		}
	}
	ad.step("exchanged")
	return aside, errors.Join(err, vfs.OS().SyncDir(filepath.Dir(link)))
}

// release makes an adopted folder an ordinary one again: it moves the folder with its files back from the store
// to the path of the link.
func (ad *adopting) release(ctx context.Context, st *varve.Store, dir string) (r adoptReport, err error) {
	link, err := adopted.LinkPath(dir)
	if err != nil {
		return r, refuse("give the path of an adopted folder", "the folder to release: %w", err)
	}
	was, known, err := ad.folders.Find(link)
	if err != nil {
		return r, err
	}
	info, err := os.Lstat(link)
	isLink := err == nil && info.Mode()&fs.ModeSymlink != 0
	folder, since := was.Folder, was.Time
	if !known && isLink { // the record is lost with the log
		if to, err := os.Readlink(link); err == nil {
			folder, known = ad.folders.FolderOf(to)
		}
	}
	if !known {
		return r, refuse("memctl status shows the adopted folders", "%s is not an adopted folder of this store", link)
	}
	r = adoptReport{Dir: link, Folder: folder}
	target := ad.folders.Target(folder)
	if err := ad.within(target); err != nil {
		return r, err
	}
	switch {
	case was.State == adopted.Releasing && err == nil && info.IsDir():
		// interrupted after the move
	case was.State == adopted.Adopting && err == nil && info.IsDir() && !ad.isFolder(target):
		// interrupted before the move
		if isSelf(target) {
			err = os.Remove(target)
		}
		return r, errors.Join(err, ad.record(link, folder, adopted.Released))
	case !ad.isFolder(target):
		return r, refuse("memctl note log PATH shows the versions of its notes", "notes/%s is missing", folder)
	case isLink && !ad.folders.LeadsTo(link, folder):
		return r, refuse("memctl note adopt "+cli.ShellQuote(dir)+" makes the link again", "the link %s now leads to "+
			"another folder", link)
	case err == nil && !isLink:
		return r, refuse("rename it and repeat the command, or add its files to the notes with memctl note adopt "+
			cli.ShellQuote(dir), "%s is now %s and not a link", link, vfs.KindOf(info.Mode()))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return r, err
	default:
		if since, err = ad.moveOut(ctx, st, link, folder, isLink); err != nil {
			return r, err
		}
	}
	if isSelf(target) {
		if err := os.Remove(target); err != nil {
			return r, err
		}
	}
	ad.step("link removed")
	if err := ad.catchUp(ctx, st, link, folder, since); err != nil {
		return r, err
	}
	ad.step("caught up")
	if r.Notes, err = st.Notes().DeleteFolder(ctx, folder); err != nil && !errors.Is(err, varve.ErrNotFound) {
		return r, err
	}
	ad.step("deleted")
	return r, ad.record(link, folder, adopted.Released)
}

// moveOut writes all notes of a folder to their files, and then moves the folder from the store to the path link.
// isLink is true if there is a link at that path. Changes that other processes make after the time since may be
// missing in the moved folder; the method catchUp adds them.
func (ad *adopting) moveOut(ctx context.Context, st *varve.Store, link, folder string,
	isLink bool) (since time.Time, err error) {
	if _, err := st.Notes().AdoptFiles(ctx, folder); err != nil {
		return since, err
	}
	since = ad.clock().UTC()
	if err := st.Flush(ctx); err != nil {
		return since, err
	}
	if err := ad.recordAt(link, folder, adopted.Releasing, since); err != nil {
		return since, err
	}
	target, files := ad.folders.Target(folder), vfs.OS()
	if !isLink {
		err = os.Rename(target, link)
	} else if err = ad.relink(link, target); err == nil { // so that it leads to itself at the other place
		if err = ad.exchange(link, target); errors.Is(err, errors.ErrUnsupported) {
			if err = os.Remove(link); err == nil {
				ad.step("link gone")
				err = os.Rename(target, link)
			}
		}
	}
	if err != nil {
		return since, fmt.Errorf("moving %s out of the store: %w", link, err)
	}
	ad.step("exchanged")
	return since, errors.Join(files.SyncDir(filepath.Dir(link)), files.SyncDir(filepath.Dir(target)))
}

// catchUp writes to the moved folder those changes of its notes that other processes made while the folder was moved.
func (ad *adopting) catchUp(ctx context.Context, st *varve.Store, link, folder string, since time.Time) error {
	w := &writing{fs: vfs.Below(vfs.OS(), link), dir: link, folded: map[string]*exported{}, made: map[string]bool{}}
	for e, err := range st.Notes().List(ctx, folder, 0) {
		if err != nil {
			return err
		}
		if e.UpdatedAt.Before(since) {
			continue
		}
		rel := note.System().Path(strings.TrimPrefix(e.Path, folder+"/"))
		name := filepath.Join(link, filepath.FromSlash(rel))
		if info, err := os.Lstat(name); err == nil && info.ModTime().After(e.UpdatedAt) {
			continue // the file was written later still
		}
		v, err := st.Notes().GetAt(ctx, e.Path, e.Version)
		if err == nil {
			err = w.folders(filepath.Dir(name))
		}
		if err == nil {
			err = w.write(name, &varve.Note{NoteInfo: e.NoteInfo, Content: v.Document}, w.fs.Rename)
		}
		if err != nil {
			return err
		}
	}
	return w.sync()
}
