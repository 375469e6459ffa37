package adopt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve/internal/engine"
	"github.com/varve-db/varve/internal/env"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/vfs"
)

// lostFolder is a folder whose loss counts as an accident: the folder of a kind, or one of kind.Kind.Roots. Once only
// a few of its files are still missing, each of these missing files is a lostFolder of its own: see restored.
type lostFolder struct {
	name   string // path of the folder in the folder of the kind; "" for that folder itself
	marked bool   // its files are being restored (docfile.Folder.Restoring), so the folder may exist again
	there  string // kind of the thing at its path that is not a folder; "" if nothing is there
}

// has reports whether the folder contains the document with an id, or the document whose companion has that id.
func (f *lostFolder) has(k *engine.Kind, id string) bool {
	if f.name == "" {
		return true
	}
	if k.FileName(id) == f.name {
		return true
	}
	of, _ := k.Document(id)
	return strings.HasPrefix(k.FileName(of), f.name+"/")
}

// path returns the path of the folder in the store.
func (f *lostFolder) path(k *engine.Kind) string { return strings.TrimSuffix(k.Name()+"/"+f.name, "/") }

// lostFolders returns the folders of a kind that were lost by accident, and whose files are not all restored yet.
func (ed *Adopter) lostFolders(k *engine.Kind) (lost []lostFolder, err error) {
	marked, err := k.Restoring()
	for _, name := range marked {
		lost = append(lost, lostFolder{name: name, marked: true})
	}
	if err != nil {
		return lost, err
	}
	roots, err := ed.roots(k)
	for _, name := range roots {
		info, err := ed.engine.Env().FS.Stat(k.Path(name))
		there := ""
		switch {
		case err == nil && info.Mode.IsDir():
			continue
		case err == nil:
			there = vfs.KindOf(info.Mode)
		}
		if at := slices.Index(marked, name); at >= 0 {
			lost[at].there = there
			continue
		}
		lost = append(lost, lostFolder{name: name, there: there})
	}
	return lost, err
}

// roots returns the folders of a kind that have to exist, as paths in the folder of the kind.
func (ed *Adopter) roots(k *engine.Kind) (names []string, err error) {
	if k.Roots == nil {
		return nil, nil
	}
	ids, err := k.Roots(ed.engine.Env().FS, ed.engine.Env().Dir)
	for _, id := range ids {
		names = append(names, k.FileName(id))
	}
	return names, err
}

// holdsOne reports whether path, or a path below it, is one of roots.
func holdsOne(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return root == path || strings.HasPrefix(root, path+"/") })
}

// rootReplaced reports whether a document is missing because something that is not a folder is in the place of a folder
// that has to exist.
func (ed *Adopter) rootReplaced(k *engine.Kind, name string) bool {
	if k.Roots == nil {
		return false
	}
	by := k.ExcludedBy(name)
	if by == "" {
		return false
	}
	roots, err := ed.roots(k)
	return err != nil || holdsOne(by, roots)
}

// inLost returns the ids of the missing documents in folders that are being restored, and in lost folders that
// contain some of ids. It reports the loss of such folders to the host.
func (ed *Adopter) inLost(ctx context.Context, k *engine.Kind, ids []string) (missing map[string]bool, err error) {
	lost, err := ed.lostFolders(k)
	if err != nil {
		return nil, err
	}
	lost = slices.DeleteFunc(lost, func(f lostFolder) bool {
		return !f.marked && !slices.ContainsFunc(ids, func(id string) bool { return f.has(k, id) })
	})
	missing = map[string]bool{}
	if len(lost) == 0 {
		return missing, nil
	}
	counts := make([]int, len(lost))
	for id, err := range ed.engine.IDs(ctx, k, engine.Filters{Expired: true}) {
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(lost, func(f lostFolder) bool { return f.has(k, id) })
		if at >= 0 && ed.ReallyMissing(ctx, k, id, k.FileName(id)) {
			missing[id] = true
			if k.FileName(id) != lost[at].name { // else the loss of the folder was reported before
				counts[at]++
			}
		}
	}
	for i, f := range lost {
		if counts[i] > 0 && f.name != "" {
			ed.engine.Env().Event(env.Event{Kind: env.EventDrift, Path: f.path(k), Count: counts[i],
				Note: "the adopted folder was missing, which does not count as the deletion of its files: they are " +
					"restored; to move an adopted folder out of the store: memctl note release"})
		}
	}
	return missing, nil
}

// fewMissing is the maximum number of missing files of a folder that restored records one by one.
const fewMissing = 32

// restored ends the restoring of the folders of a kind in which no file is missing any more. It does not count the
// files of the documents in beyond, which nothing can restore. If only a few files of a folder could not be restored
// yet, it records these files in place of the folder: then the deletion of any other file counts as a deletion again.
func (ed *Adopter) restored(ctx context.Context, k *engine.Kind, beyond map[string]bool) error {
	marked, err := k.Restoring()
	if err != nil || len(marked) == 0 {
		return err
	}
	if err := ed.engine.CatchUp(ctx); err != nil {
		return err
	}
	// Without flush.lock, since there may be many documents. A file that is missing later is either among the missing
	// files found here, or was deleted since.
	missing := make([][]string, len(marked))
	var files []string // of all marked folders
	for id, err := range ed.engine.IDs(ctx, k, engine.Filters{Expired: true}) {
		if err != nil {
			return err
		}
		if beyond[id] {
			continue
		}
		for i, name := range marked {
			if !(&lostFolder{name: name}).has(k, id) {
				continue
			}
			files = append(files, k.FileName(id))
			if len(missing[i]) <= fewMissing && ed.ReallyMissing(ctx, k, id, k.FileName(id)) {
				missing[i] = append(missing[i], k.FileName(id))
			}
		}
	}
	var ends []int // indexes in marked of the folders of which few files are missing
	for i, name := range marked {
		if len(missing[i]) <= fewMissing && !slices.Equal(missing[i], []string{name}) {
			ends = append(ends, i)
		}
	}
	if len(ends) == 0 {
		return nil
	}
	_, unlock, err := ed.flusher.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if now, err := k.Restoring(); err != nil || !slices.Equal(now, marked) {
		return err // if the list has changed, the next attempt examines the folders again
	}
	var done []string
	for _, i := range ends {
		for _, file := range missing[i] {
			if _, err := k.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				continue // restored meanwhile
			}
			if err := k.Folder.Restore(file); err != nil {
				return err
			}
		}
		done = append(done, marked[i])
	}
	// A process that was killed may have put some of the files in place. After a loss of power they would be missing
	// again, and look like deleted ones.
	if err := k.Durable(files); err != nil {
		return err
	}
	return k.Restored(done)
}

// remake creates the folder of a kind again, after recording that its files are to be restored.
func (ed *Adopter) remake(ctx context.Context, k *engine.Kind) error {
	_, unlock, err := ed.flusher.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := k.Folder.Restore(""); err != nil {
		return err
	}
	return k.Make()
}

// record records that the files of the folder of a kind are to be restored, unless that is recorded already.
func (ed *Adopter) record(ctx context.Context, k *engine.Kind) error {
	if marked, err := k.Restoring(); err != nil || slices.Contains(marked, "") {
		return err
	}
	return ed.remake(ctx, k)
}

// resumeAll restores the files of folders that have vanished, if this process or a killed process has begun but not
// finished restoring them, or if a document was written into such a folder before its loss was noticed.
func (ed *Adopter) resumeAll(ctx context.Context) {
	if ed.engine.Env().ReadOnly {
		return
	}
	for _, k := range ed.present() {
		err := ed.resume(ctx, k)
		if err != nil && ctx.Err() == nil {
			ed.engine.Env().Logger.Warn("restoring the files of a folder that was missing", "folder", k.Name(), "err", err)
		}
	}
}

func (ed *Adopter) resume(ctx context.Context, k *engine.Kind) error {
	if marked, err := k.Restoring(); err != nil || len(marked) == 0 {
		return err
	}
	if err := ed.engine.CatchUp(ctx); err != nil {
		return err
	}
	lost, err := ed.inLost(ctx, k, nil)
	if err != nil {
		return err
	}
	return (&Files{ed}).settle(ctx, k.Name(), slices.Sorted(maps.Keys(lost)), true)
}

// Delays until ResumeVanished repeats a failed attempt: the delay doubles each time.
const (
	leastResumeWait = 10 * time.Second
	mostResumeWait  = 10 * time.Minute
)

// resuming records when ResumeVanished tries again.
type resuming struct {
	at   time.Time
	wait time.Duration // delay after the last failure; 0: the last attempt has not failed
}

// ResumeVanished restores the files of folders that have vanished, and ends the restoring of folders that have all
// their files again. The restoring may have been begun by a process that was killed. ResumeVanished returns at once if
// no folder is being restored. After an attempt that did not restore everything, later calls do nothing until a delay
// has passed, unless this process has created such a folder again meanwhile. Only one goroutine at a time may call it.
func (ed *Adopter) ResumeVanished(ctx context.Context) {
	vanished := false
	for _, k := range ed.engine.Kinds().All {
		vanished = k.Vanished() || vanished
	}
	if !ed.engine.Layout().Restores() {
		ed.resuming = resuming{}
		return
	}
	now := ed.engine.Env().Clock()
	if left := ed.resuming.at.Sub(now); !vanished && left > 0 && left <= ed.resuming.wait {
		return
	}
	ed.resumeAll(ctx)
	if !ed.engine.Layout().Restores() {
		ed.resuming = resuming{}
		return
	}
	wait := min(max(2*ed.resuming.wait, leastResumeWait), mostResumeWait)
	ed.resuming = resuming{ed.engine.Env().Clock().Add(wait), wait}
}

// rootProblems returns an error for each folder that was lost by accident and in which files are still missing.
func (ed *Adopter) rootProblems(k *engine.Kind) (problems []error) {
	lost, err := ed.lostFolders(k)
	if err != nil {
		return []error{err}
	}
	if len(lost) == 0 {
		return nil
	}
	missing := make([]int, len(lost))
	for id, err := range ed.engine.IDs(context.Background(), k, engine.Filters{}) {
		if err != nil {
			break
		}
		for i, f := range lost {
			if !f.has(k, id) {
				continue
			}
			if _, companion := k.Document(id); !companion && (!f.marked || ed.ReallyMissing(context.Background(), k, id,
				k.FileName(id))) {
				missing[i]++
			}
		}
	}
	for i, n := range missing {
		f := lost[i]
		switch {
		case n == 0:
		case f.there != "":
			problems = append(problems, fmt.Errorf("%s, an adopted folder, is missing, with %s: %s is in its place; "+
				"nothing is deleted: move away what is in its place, and the next read, opening or repair restores "+
				"what log and archive have", f.path(k),
				human.Count(n, "file", "files"), f.there))
		case f.marked:
			problems = append(problems, fmt.Errorf("%s was missing, and %s not restored yet: nothing is deleted, and the "+
				"next read, opening or repair restores what log and archive have", f.path(k),
				human.Count(n, "file in it is", "files in it are")))
		default:
			problems = append(problems, goneProblem(f.path(k)+", an adopted folder,", n))
		}
	}
	return problems
}

func goneProblem(folder string, files int) error {
	return fmt.Errorf("%s is missing, with %s: nothing is deleted, and the next read or repair restores what log and "+
		"archive have", folder, human.Count(files, "file", "files"))
}

// errBeyond is the cause in an error about a file that nothing can restore.
var errBeyond = errors.New("the file is missing, and the log no longer has the version: run memctl verify")
