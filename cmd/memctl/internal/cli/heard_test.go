package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/varve-db/varve"
)

// telling is an output beside which the store tells of something.
type telling struct {
	bytes.Buffer
	a      *App
	within bool
}

func (w *telling) Write(b []byte) (int, error) {
	if w.within { // what the store tells is written too
		return w.Buffer.Write(b)
	}
	w.within = true
	defer func() { w.within = false }()
	done := make(chan bool)
	go func() {
		defer close(done)
		w.a.Heard(varve.Event{Kind: varve.EventAdopted, ID: "a", Path: "memories/a.json"})
	}()
	<-done
	return w.Buffer.Write(b)
}

// Who deletes a memory's file, and finds it there again, is told why.
func TestHeardOfPutBack(t *testing.T) {
	var errOut bytes.Buffer
	a := &App{Environment: System(), ErrOut: unbuffered(&errOut, System())}
	const kept = "memories/aa.json contains the id of the document, so the document was not deleted; to delete the " +
		"document: memctl rm"
	a.Heard(varve.Event{Kind: varve.EventRestored, ID: "a", Path: "memories/a.json", Note: kept})
	a.Heard(varve.Event{Kind: varve.EventRestored, ID: "b", Path: "memories/b.json"}) // told as what was wrong with it
	const want = "memctl: note: memory file put back: memories/a.json: " + kept + "\n"
	if errOut.String() != want {
		t.Errorf("told: %q", &errOut)
	}
}

// What the store tells of while a line is being written changes nothing in that: it once
// wrote the line twice.
func TestHeardWhileWriting(t *testing.T) {
	var errOut bytes.Buffer
	out := &telling{}
	out.a = &App{Environment: System(), ErrOut: unbuffered(&errOut, System())}
	out.a.Out = newOutput(out, System())
	for _, line := range []string{"one", "two"} {
		if _, err := out.a.Out.WriteString(line + "\n"); err != nil {
			t.Fatal(err)
		}
		if err := out.a.Out.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != "one\ntwo\n" {
		t.Errorf("written: %q", got)
	}
	if n := strings.Count(errOut.String(), "edited file adopted: memories/a.json"); n != 2 {
		t.Errorf("told: %s", &errOut)
	}
}
