package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/jsondoc"
	"github.com/varve-db/varve/internal/kind"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/record"
	"github.com/varve-db/varve/internal/state"
	"github.com/varve-db/varve/internal/worklog"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/working"
)

// scopes reads the files of working memory. For each scope that changed since the index was written, it verifies that
// the log's entries of the scope continue the file.
func (v *Run) scopes() error {
	folder := docfile.Layout{FS: v.Source.FS, Root: v.Source.Dir}.Folder(places.Working)
	names, err := folder.Names()
	if err != nil && !places.Gone(err) {
		return v.report(repair.Finding{Kind: repair.WorkingDamaged, Severity: repair.Lost, Path: places.Working, Offset: -1,
			Err: err, Stake: "all files in the folder", Next: repair.NextRepair})
	}
	slices.Sort(names)
	logged := map[string]string{} // file name → key
	for _, at := range v.Source.State.Changes(v.Source.State.From(), 1<<62) {
		e, err := v.Source.Log.ReadAt(v.ctx, at.Pos)
		if err == nil && len(e.Key) > 1 && e.Key[0] == record.Working {
			key := strings.Clone(e.Key[1:])
			logged[kind.Scopes.FileName(key)] = key
			if _, found := slices.BinarySearch(names, kind.Scopes.FileName(key)); !found {
				names = append(names, kind.Scopes.FileName(key))
			}
		}
	}
	slices.Sort(names)
	v.total += int64(len(names))
	for _, name := range slices.Compact(names) {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		v.progress(1)
		if !v.o.Chosen(name) {
			continue
		}
		if err := v.scope(folder, name, logged[name]); err != nil {
			return err
		}
	}
	return nil
}

// scope checks the file of one scope. If the scope's key is known, it also checks the log entries of the scope.
func (v *Run) scope(folder *docfile.Folder, name, key string) error {
	for try := 0; ; try++ {
		out := repair.Finding{Severity: repair.Healable, Path: places.Working + "/" + name, Offset: -1,
			Next: repair.NextRepair}
		f, ok := v.scopeFile(folder, name, key, &out)
		if key != "" {
			rests, err := v.rests(key, f)
			switch {
			case err != nil && ok:
				ok, out.ID, out.Kind, out.Severity, out.Err = false, key, repair.WorkingDamaged, repair.Lost, err
				out.Stake, out.Heals = "the content of the scope", repair.ByArchive
			case err == nil && !rests && out.Kind == repair.WorkingDamaged:
				return nil // the log has the whole scope; the next flush moves the file to quarantine
			}
		}
		if ok {
			if f != nil {
				v.sum.Files++
				v.sum.Scopes++
			}
			return nil
		}
		if try == tries {
			return v.report(out)
		}
		if err := v.Source.CatchUp(v.ctx); err != nil && !errors.Is(err, errs.ErrCorrupt) {
			return err
		}
	}
}

// scopeFile reads the file of a scope. It returns true if the file is missing or nothing is wrong with it; if the
// file is missing, the File is nil. Otherwise it returns false, and records in out what is wrong with the file.
func (v *Run) scopeFile(folder *docfile.Folder, name, key string, out *repair.Finding) (*working.File, bool) {
	info, err := folder.Stat(name)
	switch {
	case places.Gone(err):
		return nil, true
	case err == nil && !info.Mode.IsRegular():
		out.Kind, out.Heals, out.Err = repair.Foreign, repair.ByMoving,
			fmt.Errorf("not a regular file (%s), never opened by the store", info.Mode)
		return nil, false
	case !strings.HasSuffix(name, jsondoc.Extension):
		out.Kind, out.Severity, out.Heals, out.Err = repair.Foreign, repair.Info, repair.ByMoving,
			errors.New("not the file of a scope")
		return nil, false
	}
	doc, _, err := folder.Read(name, places.DocumentMost)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true
	}
	var f *working.File
	if err == nil {
		f, err = working.DecodeFile(doc)
	}
	if err != nil {
		out.Kind, out.ID, out.Severity, out.Stake, out.Heals, out.Err = repair.WorkingDamaged, key, repair.Lost,
			"the content of the scope", repair.ByArchive, err
		return nil, false
	}
	v.sum.Bytes += int64(len(doc))
	out.ID = f.Scope.Key()
	switch {
	case kind.Scopes.FileName(out.ID) != name:
		out.Kind, out.Heals, out.Err = repair.Misplaced, repair.ByMoving,
			fmt.Errorf("the scope in this file belongs in %s/%s", places.Working, kind.Scopes.FileName(out.ID))
		return f, false
	case !f.Intact:
		out.Kind, out.Severity, out.Heals, out.Next = repair.WorkingEdited, repair.Info, repair.ByAdoption, ""
		out.Err = errors.New("edited by hand; adopted when the scope is next used")
		return f, false
	}
	return f, true
}

// rests follows the log entries of a scope, from the newest one back to the entry that continues the scope's file f; f
// is nil if there is no file. It reports whether the entries depend on the file. The error describes what is missing
// between the file and the entries.
func (v *Run) rests(key string, f *working.File) (rests bool, err error) {
	base := (&worklog.Replay{Store: v.store(), File: f}).Base()
	at := v.Source.State.Work(key)
	if !state.IsWork(at) {
		return true, nil // spilled meanwhile: the file is current
	}
	for at > base {
		if at < v.Source.State.From() {
			return true, fmt.Errorf("the entries of the scope in the log continue from position %d, but the file "+
				"has the state of position %d", at, base)
		}
		e, err := v.Source.Log.ReadAt(v.ctx, at)
		if err != nil {
			return true, err
		}
		w, view, err := worklog.Work(v.Source.Codec, &e)
		if err != nil {
			return true, err
		}
		if worklog.Begins(w) {
			return false, nil
		}
		if at = view.Previous; at < base {
			return true, fmt.Errorf("the entries of the scope in the log continue from position %d, but the file "+
				"has the state of position %d", at, base)
		}
	}
	if f == nil {
		return true, errors.New("the log continues from a missing file")
	}
	return true, nil
}
