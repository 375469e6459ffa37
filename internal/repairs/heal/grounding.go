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

// What is healed while nobody has the store open.

// fixConfig writes a config.json with the members that are valid.
func (r *repairer) fixConfig(d *repair.Done) error {
	text, err := vfs.ReadFile(r.o.FS, r.path("config.json"), places.ConfigMost)
	if err != nil && !places.Gone(err) && !errors.Is(err, errs.ErrTooLarge) && !errors.Is(err, vfs.ErrNotRegular) {
		return err
	}
	if err == nil && r.o.Config(text) == nil {
		return errNothing
	}
	var read map[string]json.RawMessage
	// an editor may have put the mark there
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
	for name, value := range read { // the order does not matter: each is tried by itself
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
		d.Result = "the file could not be read at all: all settings have their defaults now"
	}
	// What is not known may have said that these remove less than their defaults do.
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
			continue // the default removes none
		}
		if _, valid := out[s.name]; !valid && (read == nil || read[s.name] != nil) {
			out[s.name] = json.RawMessage(s.value)
			kept = append(kept, s.name)
		}
	}
	if len(kept) > 0 {
		d.Result += ", except that nothing is removed by " + strings.Join(kept, " and ") + ": set or unset them"
	}
	return r.write(d, "config.json", encode())
}

// asideOfLog sets a file of the log aside. A segment that could not be read when the plan was made may be another one
// by now: a second repair that waited for the lock would set aside the log that the first one has begun.
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

// newMarks writes the checkpoint that holds into a file of its own; without one
// it takes the file away, and opening finds the marks in the segments.
func (r *repairer) newMarks(d *repair.Done) error {
	c, err := wal.ReadCheckpoint(r.o.FS, r.dir)
	for _, f := range d.Findings {
		if f.Kind == repair.CheckpointMark || f.Remarks&repair.OtherLog != 0 {
			err = errors.New("its positions belong to another log")
		}
	}
	if err != nil {
		if err := r.keepFor(d, "checkpoint"); err != nil {
			return err
		}
		d.Result = "opening finds the marks in the segments"
		return r.remove("checkpoint")
	}
	if err := r.keepFor(d, "checkpoint"); err != nil {
		return err
	}
	d.Result = "from the sound slot"
	return wal.NewCheckpoint(r.o.FS, r.dir, c, r.o.fileMode())
}

// indexAside takes base and delta away; opening rebuilds the index.
func (r *repairer) indexAside(d *repair.Done) error {
	for _, name := range []string{index.BaseName, index.DeltaName} {
		if err := r.keepFor(d, name); err != nil {
			return err
		}
	}
	for _, name := range []string{index.DeltaName, index.BaseName} { // never a delta without its base
		if err := r.remove(name); err != nil {
			return err
		}
	}
	d.Result = "the next open rebuilds it"
	return nil
}
