package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MostName is how many bytes a name has at most, with Mark.
const MostName = 256

// Mark ends a name that was cut.
const Mark = "…"

// MostUndo is how many bytes Writer.Undo has at most.
const MostUndo = 1024

// mostLine bounds what Parse reads: seven names, each byte of which JSON escapes with six, and an undo.
const mostLine = 16 << 10

// Writer describes who changed a store. The zero value of a field is that it is not known.
type Writer struct {
	Number uint32 `json:"number"` // issued by the store
	Since  uint64 `json:"-"`      // the position of the entry that explains the number

	Program       string    `json:"program,omitempty"`        // with its command, such as "memctl put"
	Host          string    `json:"host,omitempty"`           // name of the machine
	PID           int       `json:"pid,omitempty"`            // of the process on that machine
	Started       time.Time `json:"started,omitzero"`         // when the process opened the store
	Agent         string    `json:"agent,omitempty"`          // for which the process writes
	Session       string    `json:"session,omitempty"`        // of the agent
	Client        string    `json:"client,omitempty"`         // name that an MCP client gave itself
	ClientVersion string    `json:"client_version,omitempty"` // likewise
	Token         string    `json:"token,omitempty"`          // name of the token of a client
	// Undo is what a writer takes back in several commits, for which it has a number of its own: a JSON object
	// that identifies the undo. "" for all other writers.
	Undo string `json:"undo,omitempty"`
}

var errWriter = errors.New("not an explanation of a writer")

func (w *Writer) names() [7]*string {
	return [7]*string{&w.Program, &w.Host, &w.Agent, &w.Session, &w.Client, &w.ClientVersion, &w.Token}
}

// Fit cuts and escapes the names as the package comment says.
func (w *Writer) Fit() {
	for _, s := range w.names() {
		*s = fitName(*s)
	}
	w.Started = w.Started.UTC().Truncate(time.Microsecond)
	if y := w.Started.Year(); y < 1 || y > 9999 {
		w.Started = time.Time{}
	}
	w.PID = max(w.PID, 0)
	if len(w.Undo) > MostUndo || !utf8.ValidString(w.Undo) || strings.ContainsFunc(w.Undo, special) {
		w.Undo = "" // cut, it would identify another undo
	}
}

// TooLong returns the first name of more than MostName bytes, and its name in JSON.
func (w *Writer) TooLong() (name, value string) {
	for i, s := range w.names() {
		if len(*s) > MostName {
			return [...]string{"program", "host", "agent", "session", "client", "client_version", "token"}[i], *s
		}
	}
	return "", ""
}

// Described returns the description alone, without the number: it is equal for one process as long as
// that describes itself in the same way.
func (w Writer) Described() Writer {
	w.Number, w.Since = 0, 0
	return w
}

// fitName returns a name with the special characters escaped, of at most MostName bytes.
func fitName(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	end := 0 // up to which the name leaves room for Mark
	for _, r := range s {
		switch {
		case special(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r) // U+FFFD in the place of a byte that is no UTF-8
		}
		if b.Len() <= MostName-len(Mark) {
			end = b.Len()
		}
		if b.Len() > MostName {
			return b.String()[:end] + Mark
		}
	}
	return b.String()
}

// plain reports whether a name needs no change.
func plain(s string) bool {
	return len(s) <= MostName && utf8.ValidString(s) && !strings.ContainsFunc(s, special)
}

// special reports whether a character does something else than to be shown.
func special(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// Line returns the JSON object of an explanation.
func (w *Writer) Line() ([]byte, error) { return json.Marshal(w) }

// Parse reads the JSON object of an explanation, and fits it: a forged one says no more than one that
// Line has written.
func Parse(line []byte) (Writer, error) {
	var w Writer
	if len(line) > mostLine {
		return w, fmt.Errorf("%w: %d bytes, the limit is %d", errWriter, len(line), mostLine)
	}
	if err := json.Unmarshal(line, &w); err != nil {
		return Writer{}, fmt.Errorf("%w: %w", errWriter, err)
	}
	if w.Number == 0 {
		return Writer{}, fmt.Errorf("%w: it has no number", errWriter)
	}
	w.Fit()
	return w, nil
}

// Name returns the most telling of the names: that of the agent, the client, the token or the program.
func (w Writer) Name() string {
	for _, s := range []string{w.Agent, w.Client, w.Token, w.Program} {
		if s != "" {
			return s
		}
	}
	return fmt.Sprintf("writer %d", w.Number)
}

// Is reports whether one of the names of the writer is name: program, agent, session, client or token.
func (w Writer) Is(name string) bool {
	program, _, _ := strings.Cut(w.Program, " ")
	for _, s := range []string{w.Program, program, w.Agent, w.Session, w.Client, w.Token} {
		if s != "" && s == name {
			return true
		}
	}
	return false
}

// String describes the writer in one line.
func (w Writer) String() string {
	var parts []string
	add := func(format string, s string) {
		if s != "" {
			parts = append(parts, fmt.Sprintf(format, s))
		}
	}
	name := w.Name()
	if w.Client != "" && w.ClientVersion != "" && name == w.Client {
		name += " " + w.ClientVersion
	}
	if w.Session != "" {
		add("session %s", w.Session)
	}
	if w.Client != "" && w.Agent != "" {
		add("client %s", strings.TrimSpace(w.Client+" "+w.ClientVersion))
	}
	if w.Token != "" && w.Token != name {
		add("token %s", w.Token)
	}
	if w.Program != name {
		add("%s", w.Program)
	}
	if w.PID != 0 {
		add("process %s", fmt.Sprint(w.PID))
	}
	add("on %s", w.Host)
	if len(parts) == 0 {
		return name
	}
	return name + " (" + strings.Join(parts, ", ") + ")"
}
