package heal

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/internal/places"
	"github.com/varve-db/varve/internal/settings"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal"
)

// This file has the repairs that are made while no process has the store open.

// fixConfig writes a new config.json that keeps the valid settings of the present file. An invalid setting gets its
// default. If the default could remove data, the setting gets a value that removes nothing.
func (r *repairer) fixConfig(d *repair.Done) error {
	text, err := vfs.ReadFile(r.o.FS, r.path("config.json"), places.ConfigMost)
	if err != nil && !places.Gone(err) && !errors.Is(err, errs.ErrTooLarge) && !errors.Is(err, vfs.ErrNotRegular) {
		return err
	}
	if err == nil && r.o.Config(text) == nil {
		return errNothing
	}
	var read map[string]json.RawMessage
	// An editor may have put a byte order mark there.
	if json.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), &read) != nil {
		read = nil
	}
	out := map[string]json.RawMessage{"varve": json.RawMessage("1")}
	encode := func() []byte {
		b, err := json.MarshalIndent(out, "", "  ")
		if err != nil {
			return nil
		}
		return append(b, '\n')
	}
	dropped := 0
	for name, value := range read { // each member is tried by itself, so the order does not matter
		was, had := out[name]
		out[name] = value
		if r.o.Config(encode()) == nil {
			continue
		}
		if delete(out, name); had {
			out[name] = was
		}
		dropped++
	}
	d.Result = "invalid settings have their defaults now"
	if read == nil {
		d.Result = "config.json could not be parsed: all settings have their defaults now"
	}
	// The lost settings may have removed less than their defaults do: keep everything.
	backups, err := index.Backups(r.o.FS, r.dir)
	if err != nil {
		return err
	}
	var kept []string
	for _, s := range []struct{ name, value string }{
		{"adopt_deletions", "false"}, {"history_bytes", strconv.Itoa(settings.HistoryMost)},
		{"index_backup_count", strconv.Itoa(min(len(backups), settings.BackupsMost))},
	} {
		if s.name == "index_backup_count" && len(backups) <= (&settings.Config{}).Backups() {
			continue // the default would not remove any
		}
		if _, valid := out[s.name]; !valid && (read == nil || read[s.name] != nil) {
			out[s.name] = json.RawMessage(s.value)
			kept = append(kept, s.name)
		}
	}
	if len(kept) > 0 {
		d.Result += ", with " + strings.Join(kept, " and ") + " set to values with which nothing is removed → check " +
			"these settings in config.json"
	}
	return r.write(d, "config.json", encode())
}

// asideOfLog moves a file of the log to quarantine. If the file is a segment that could not be read when the plan was
// made, asideOfLog first reads the segment again. While this repair waited for the lock, another repair may have begun
// a new log, and the file may be a segment of the new log.
func (r *repairer) asideOfLog(d *repair.Done) error {
	f := &d.Findings[0]
	if f.Kind.General() == repair.SegmentDamaged && f.Remarks&repair.Unopened != 0 {
		b, err := vfs.ReadFile(r.o.FS, r.path("wal", path.Base(d.Path)), segment.MaxSize)
		var start segment.Start
		if err == nil {
			start, _, err = segment.ParseStart(b)
		}
		if number, ok := segment.ParseName(path.Base(d.Path)); err == nil && (!ok || start.Number != number) {
			err = segment.ErrHeader
		}
		if err == nil || errors.Is(err, segment.ErrEnd) {
			return errNothing
		}
	}
	return r.setAside(d, d.Path, reasonOf(d.Findings))
}

// newMarks writes a new checkpoint file with the content of the slot that is valid. If no slot is valid, or the log
// positions in the checkpoint belong to another log, newMarks removes the file. The next open then finds the positions
// for recovery in the segments.
func (r *repairer) newMarks(d *repair.Done) error {
	c, err := wal.ReadCheckpoint(r.o.FS, r.dir)
	for _, f := range d.Findings {
		if f.Kind == repair.CheckpointMark || f.Remarks&repair.OtherLog != 0 {
			err = errors.New("the log positions in the checkpoint belong to another log")
		}
	}
	if err != nil {
		if err := r.keepFor(d, "checkpoint"); err != nil {
			return err
		}
		d.Result = "the next open of the store finds the positions in the segments of the log"
		return r.remove("checkpoint")
	}
	if err := r.keepFor(d, "checkpoint"); err != nil {
		return err
	}
	d.Result = "rewritten from the valid slot"
	return wal.NewCheckpoint(r.o.FS, r.dir, c, r.o.fileMode())
}

// indexAside moves the base file and the delta file of the index to quarantine. The next open rebuilds the index.
func (r *repairer) indexAside(d *repair.Done) error {
	for _, name := range []string{index.BaseName, index.DeltaName} {
		if err := r.keepFor(d, name); err != nil {
			return err
		}
	}
	for _, name := range []string{index.DeltaName, index.BaseName} { // never leave a delta without its base
		if err := r.remove(name); err != nil {
			return err
		}
	}
	d.Result = "the next open of the store rebuilds the index"
	return nil
}
