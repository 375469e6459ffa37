//go:build unix

package replaced

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// judgement has the counts of one run.
type judgement struct {
	aAcked, aLost, bAcked, bLost, excused int
}

// judge checks what is left after all processes have ended.
func (tr *trial) judge() error {
	tr.answers()
	if tr.refused { // as the error says
		_, _ = run(tr.path, "repair", "--apply") // its exit status is that of its findings; verify decides
	}
	tr.verify(tr.path, "the store at the path")
	at, texts, err := revisions(tr.path)
	if err != nil && len(at) == 0 {
		tr.f.add("damage", "the store at the path cannot be read: %s", firstLines(err.Error(), 4))
	} else if err != nil {
		tr.f.add("damage", "the store at the path: %s", firstLines(err.Error(), 4))
	}
	for id, want := range tr.seeds {
		if got := texts[id]; got != want && len(at) > 0 {
			tr.f.add("lost-seed", "the memory %s, which the store at the path had before, is %q, want %q",
				id, got, want)
		}
	}
	if tr.e.other && (tr.state == watching && tr.kind != kindWatch || tr.state == writing && tr.kind == kindWatch) {
		tr.handSaved(at)
	}
	if tr.e.name == "bind" {
		if err := unbind(tr.world); err != nil {
			return err
		}
		tr.old = tr.path
	}
	old := map[string]int{}
	if tr.old != "" {
		tr.verify(tr.old, "the folder that A had opened")
		if old, _, err = revisions(tr.old); err != nil {
			tr.f.add("damage", "the folder that A had opened, %s: %s",
				filepath.Base(tr.old), firstLines(err.Error(), 4))
		}
	}
	tr.count(at, old)
	return nil
}

// handSaved checks that a document which was saved by hand in the store at the path is still there.
func (tr *trial) handSaved(at map[string]int) {
	if at["hand-new"] > 0 {
		return
	}
	if _, err := os.Stat(filepath.Join(tr.path, "memories", "hand-new.json")); err != nil {
		tr.f.add("lost-hand", "the document that was saved by hand in the store at the path is gone: %v", err)
	}
}

// verify runs memctl verify.
func (tr *trial) verify(dir, what string) {
	out, err := run(dir, "verify", "--json")
	var doc struct {
		Findings []map[string]any
		Error    map[string]any
	}
	_ = json.Unmarshal([]byte(out), &doc)
	var list []string
	for _, f := range doc.Findings {
		if f["severity"] != "info" && !tr.byEvent(f) {
			b, _ := json.Marshal(f)
			list = append(list, string(b))
		}
	}
	switch {
	case len(list) > 0:
		tr.f.add("damage", "memctl verify of %s: %d findings\n\t\t%s", what, len(list), shortly(list, 3))
	case err != nil && len(doc.Findings) == 0:
		tr.f.add("damage", "memctl verify of %s: %s", what, firstLines(err.Error(), 4))
	}
}

// byEvent reports whether a finding of verify is caused by the event itself, as the cells of kind killed
// show: without its log a store gets a new UUID, and a backup of the index has the previous one; and an
// older copy does not have the documents that came after it.
func (tr *trial) byEvent(f map[string]any) bool {
	id, _ := f["id"].(string)
	switch {
	case id == "hand-new" && f["kind"] == "file without entry": // no process that adopts edits was running
		return true
	case tr.e.name == "wipe":
		return f["kind"] == "backup damaged"
	case tr.e.name == "over":
		return f["kind"] == "file without entry" && !strings.HasPrefix(id, "b-") && !strings.HasPrefix(id, "entity:b-")
	}
	return false
}

// answers checks the errors that the processes got.
func (tr *trial) answers() {
	for _, w := range tr.b.all() {
		switch {
		case w.Err == "":
		case tr.named(w.Err):
			tr.refused = true
		default:
			tr.f.add("refused", "%s of B, %s: %s", w.Op, tr.when(&w), w.Err)
		}
	}
	switch tr.kind {
	case kindLibrary:
		for _, w := range tr.a.all() {
			switch {
			case w.Begin < tr.ended, tr.spared() && tr.fenced(&w):
			case w.Err == "":
				tr.f.add("late", "%s of A, %s, returned nil, want ErrReplaced", w.Op, tr.when(&w))
			case !w.Replaced:
				tr.f.add("error", "%s of A, %s, returned another error than ErrReplaced: %s", w.Op, tr.when(&w), w.Err)
			}
		}
	case kindMCP:
		tr.answersMCP()
	}
}

// named reports whether an error of B names the damage caused by a cleaner: while A is alive, its shared
// page attests a log whose segments are gone, and B writes nothing until that was repaired. The same if
// an older copy was extracted over a log that has continued since: its newer segments are beside older
// ones, which is a damaged log for every process.
func (tr *trial) named(err string) bool {
	mixed := tr.e.name == "over" && strings.Contains(err, "damaged")
	return mixed || tr.e.name == "wipe" && (strings.Contains(err, "damaged") || strings.Contains(err, "no such segment"))
}

// fenced reports whether an answer is one that A may get although the event spared the log: a success,
// or, without the lock files, the error that another process has recovered the log meanwhile.
func (tr *trial) fenced(w *write) bool {
	return w.Err == "" || w.Replaced || strings.Contains(w.Err, "open the store again") ||
		strings.Contains(w.Err, "the store is closed")
}

// answersMCP checks the answers of memctl mcp after the event: at most one call is answered with
// ErrReplaced, and calls that are sent after this answer succeed.
func (tr *trial) answersMCP() {
	first := int64(0)
	served := false
	for _, w := range tr.a.all() {
		switch {
		case w.Begin < tr.ended, w.Err == errEnded.Error():
		case w.Err == "":
			served = true
		case !w.Replaced && tr.named(w.Err):
			tr.refused = true
		case tr.e.absent && w.Begin < tr.ready || tr.ready == 0:
			if !w.Replaced && !strings.Contains(w.Err, "no store") {
				tr.f.add("error", "%s of A, %s, while there is no store: %s", w.Op, tr.when(&w), w.Err)
			}
		case !w.Replaced && !(tr.spared() && tr.fenced(&w)):
			tr.f.add("error", "%s of A, %s, is answered with another error than ErrReplaced: %s",
				w.Op, tr.when(&w), w.Err)
		case first == 0:
			first = w.End
		case w.Begin > first:
			tr.f.add("again", "%s of A, %s, is answered with an error again: %s", w.Op, tr.when(&w), w.Err)
		}
	}
	if served && !tr.spared() && !tr.told() {
		tr.f.add("silent",
			"A has served calls after the event and has not said that it serves another store; stderr: %s",
			firstLines(tr.server.stderr.String(), 8))
	}
}

// when describes the time of a write.
func (tr *trial) when(w *write) string {
	of := func(at int64) string {
		switch {
		case at < tr.began:
			return fmt.Sprintf("%v before the event", time.Duration(tr.began-at).Round(time.Microsecond))
		case at <= tr.ended:
			return fmt.Sprintf("%v into the event", time.Duration(at-tr.began).Round(time.Microsecond))
		}
		return fmt.Sprintf("%v after the event", time.Duration(at-tr.ended).Round(time.Microsecond))
	}
	return "begun " + of(w.Begin) + ", answered " + of(w.End)
}

// count searches for every acknowledged write.
func (tr *trial) count(at, old map[string]int) {
	for _, w := range tr.b.all() {
		for _, id := range w.IDs {
			if w.Err == "" && at[id] < w.Rev {
				tr.f.add("lost-B", "%s of B, %s, was acknowledged and is not in the store at the path", id, tr.when(&w))
			}
		}
	}
	for _, w := range tr.a.all() {
		for _, id := range w.IDs {
			if w.Err != "" {
				continue
			}
			switch found := max(at[id], old[id]) >= w.Rev; {
			case found && tr.kind == kindMCP && !tr.spared() && w.Begin > tr.ended && at[id] < w.Rev:
				tr.f.add("late",
					"%s of A, %s, was acknowledged and is only in the folder that is no longer at the path",
					id, tr.when(&w))
			case found:
			case w.Begin > tr.ended:
				tr.f.add("lost-A", "%s of A (%s), %s, was acknowledged and is nowhere", id, w.Op, tr.when(&w))
			case tr.excused() && !tr.host():
				tr.j.excused++
			case tr.excused():
				tr.f.add("lost-A",
					"%s of A (%s), %s, was acknowledged, had not been filed, and was not put into the log again",
					id, w.Op, tr.when(&w))
			default:
				tr.f.add("lost-A", "%s of A (%s), %s, was acknowledged and is nowhere", id, w.Op, tr.when(&w))
			}
		}
	}
	for _, w := range tr.filler.all() {
		for _, id := range w.IDs {
			if w.Err != "" || max(at[id], old[id]) >= w.Rev {
				continue
			}
			if tr.excused() {
				tr.j.excused++
				continue
			}
			tr.f.add("lost-A", "%s, of a process before A, %s, was acknowledged and is nowhere", id, tr.when(&w))
		}
	}
	tr.j.aAcked, tr.j.bAcked = tr.a.acknowledged(), tr.b.acknowledged()
	for _, f := range tr.f.all() {
		switch f.class {
		case "lost-A":
			tr.j.aLost++
		case "lost-B":
			tr.j.bLost++
		}
	}
}

// excused reports whether the event itself destroyed writes that were acknowledged before its end and
// were only in the log.
func (tr *trial) excused() bool { return tr.gone || tr.e.destroy && !tr.spared() }

// host reports whether A must restore what it had acknowledged and was in no file yet.
func (tr *trial) host() bool { return tr.e.logOnly && (tr.kind == kindMCP || tr.kind == kindWatch) }
