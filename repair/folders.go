package repair

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
)

// temp looks for what processes left in tmp/ that are gone. Who a folder there
// belongs to is not written down, so this can be told only while nobody else
// has the store open.
func (v *verify) temp() error {
	names, err := v.s.FS.ReadDir(v.path("tmp"))
	if places.Gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	self := 0
	if v.s.Token != "" {
		self = 1
	}
	if len(v.s.Log.Processes()) > self {
		return nil
	}
	slices.Sort(names)
	for _, name := range names {
		if name == "parked" || v.s.Token != "" && strings.Contains(name, v.s.Token) {
			continue
		}
		if _, err := v.s.FS.Stat(v.path("tmp", name)); places.Gone(err) || len(v.s.Log.Processes()) > self {
			continue
		}
		if err := v.report(Finding{Kind: Leftover, Path: "tmp/" + name, Offset: -1, Stake: "space; or an edit that was displaced at the moment of a crash",
			Heals: ByMoving, Next: nextRepair, Err: fmt.Errorf("its process is gone; after an unclean end the next flush looks it through")}); err != nil {
			return err
		}
	}
	return nil
}

// quarantine counts what was set aside.
func (v *verify) quarantine() error {
	names, err := v.s.FS.ReadDir(v.path("quarantine"))
	if places.Gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	notes := 0
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, ".note.json"):
			notes++
		case filepath.Ext(name) != ".part" && !strings.HasSuffix(name, manifestTail):
			v.sum.Quarantined++
		}
	}
	if v.sum.Quarantined == 0 {
		return nil
	}
	return v.report(Finding{Kind: Quarantined, Path: "quarantine", Offset: -1, Stake: "what was set aside, until somebody has looked at it",
		Err: fmt.Errorf("%d things lie there, %d with a note that says why", v.sum.Quarantined, notes)})
}

// folders reports them of an open store, and names the links in backups/, which may be a
// person's own: nothing enters them.
func (v *verify) folders() error {
	list, _ := notFolders(v.s.FS, v.s.Dir)
	names, err := v.s.FS.ReadDir(v.path("backups"))
	if err != nil && !places.Gone(err) && !errors.Is(err, vfs.ErrNotFolder) {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		path := v.path("backups", name)
		if info, err := v.s.FS.Stat(path); err == nil && !info.Mode.IsDir() && !info.Mode.IsRegular() {
			list = append(list, Finding{Kind: NotFolder, Severity: Info, Path: "backups/" + name, Offset: -1,
				Stake: "nothing: it is not entered", Err: &vfs.NotFolderError{Path: path, Mode: info.Mode}})
		}
	}
	for _, f := range list {
		if err := v.report(f); err != nil {
			return err
		}
	}
	return nil
}
