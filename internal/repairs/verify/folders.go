package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/varve-db/varve/internal/docfile"
	"github.com/varve-db/varve/internal/human"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// temp reports files in tmp/ whose processes have ended. A folder in tmp/ does not record which process made it, so
// temp can report only while no other process has the store open.
func (v *Run) temp() error {
	names, err := v.Source.FS.ReadDir(v.path("tmp"))
	if places.Gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	self := 0
	if v.Source.Token != "" {
		self = 1
	}
	if len(v.Source.Log.Processes().IDs()) > self {
		return nil
	}
	slices.Sort(names)
	for _, name := range names {
		if name == "parked" || v.Source.Token != "" && strings.Contains(name, v.Source.Token) {
			continue
		}
		_, err := v.Source.FS.Stat(v.path("tmp", name))
		if places.Gone(err) || len(v.Source.Log.Processes().IDs()) > self {
			continue
		}
		if err := v.report(repair.Finding{Kind: repair.Leftover, Path: "tmp/" + name, Offset: -1,
			Stake: "disk space, or an edit that a write of the store had just replaced when the process crashed",
			Heals: repair.ByMoving, Next: repair.NextRepair,
			Err: fmt.Errorf("the process that created the file has ended; after a crash, the next flush examines the " +
				"file")}); err != nil {
			return err
		}
	}
	return nil
}

// quarantine counts the entries of quarantine/, and reports one finding if there are any.
func (v *Run) quarantine() error {
	layout := docfile.Layout{FS: v.Source.FS, Root: v.Source.Dir}
	n, notes, err := docfile.NewQuarantine(layout, nil).Count()
	if err != nil {
		return err
	}
	v.sum.Quarantined += int64(n)
	if v.sum.Quarantined == 0 {
		return nil
	}
	return v.report(repair.Finding{Kind: repair.Quarantined, Path: "quarantine", Offset: -1,
		Stake: "the files in quarantine/, until you have inspected them", Next: repair.NextQuarantine,
		Err: fmt.Errorf("%s set aside, %d with a note of the reason",
			human.Count(int(v.sum.Quarantined), "file is", "files are"), notes)})
}

// folders reports links and other objects at the paths of the folders of an open store. Links in backups/ may be made
// by users: folders reports them and does not follow them.
func (v *Run) folders() error {
	list, _ := NotFolders(v.Source.FS, v.Source.Dir)
	names, err := v.Source.FS.ReadDir(v.path("backups"))
	if err != nil && !places.Gone(err) && !errors.Is(err, vfs.ErrNotFolder) {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		path := v.path("backups", name)
		if info, err := v.Source.FS.Stat(path); err == nil && !info.Mode.IsDir() && !info.Mode.IsRegular() {
			list = append(list, repair.Finding{Kind: repair.NotFolder, Severity: repair.Info, Path: "backups/" + name,
				Offset: -1,
				Stake:  "nothing: the link is not followed", Err: &vfs.NotFolderError{Path: path, Mode: info.Mode}})
		}
	}
	for _, f := range list {
		if err := v.report(f); err != nil {
			return err
		}
	}
	return nil
}
