package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve/internal/proofs"
)

// picture are the commands of docs/terminal.svg: what the README shows first. A shell runs them on
// a terminal of 80 columns.
var picture = []string{
	`memctl init`,
	`memctl put "prefers short answers" --id style --session ada`,
	`cat storage/memories/style.json`,
	`seq 100000 | timeout -s KILL 2 xargs -I{} memctl put "note {}" > acknowledged`,
	`wc -l < acknowledged`,
	`ls storage/memories | wc -l             # these, and style`,
	`memctl verify`,
	`memctl search "short answers"`,
}

// TestPicture: docs/terminal.svg shows what memctl prints. Written by
//
//	VARVE_CI=1 go test ./cmd/memctl -run TestPicture -update
func TestPicture(t *testing.T) {
	proofs.ManyProcesses(t, "it writes and is killed for two seconds")
	t.Parallel()
	for _, tool := range []string{"bash", "timeout", "xargs", "seq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%v: apt-get install bash findutils coreutils", err)
		}
	}
	lines := transcript(t)
	// Killed in the middle of a flush, the writer leaves a file in tmp/, which verify tells. That is
	// sound, and not what the picture is of.
	for range 4 {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, ": leftover (info)") }) {
			break
		}
		lines = transcript(t)
	}
	shown := drawn(lines)
	file := filepath.Join("..", "..", "docs", "terminal.svg")
	if *updateReference {
		if err := os.WriteFile(file, shown, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	committed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Times, counts, scores, and where a line ends because of them, differ from run to run.
	blank, number := regexp.MustCompile(`<[^>]*>|\s+`), regexp.MustCompile(`[0-9][0-9,.:TZ-]*`)
	plain := func(b []byte) string { return number.ReplaceAllString(blank.ReplaceAllString(string(b), ""), "0") }
	if plain(shown) != plain(committed) {
		t.Errorf("docs/terminal.svg is not what memctl prints: VARVE_CI=1 go test ./cmd/memctl -run TestPicture -update\n%s", shown)
	}
}

// transcript has the commands, each behind a prompt, and what they printed.
func transcript(t *testing.T) (lines []string) {
	t.Helper()
	var script strings.Builder
	script.WriteString("exec 2>&1\n")
	for _, c := range picture {
		fmt.Fprintf(&script, "printf '%s%%s\\n' %s\n%s\n", prompt, shellQuoted(c), c)
	}
	script.WriteString("true\n")
	dir := t.TempDir()
	cmd := exec.Command("bash", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + filepath.Dir(memctlBinary(t)) + ":" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm", "TZ=UTC", "NO_COLOR=1", "XDG_STATE_HOME=" + dir + "/state"}
	out := onTerminalOf(t, unix.Winsize{Row: 50, Col: 80}, cmd, "")
	out = strings.ReplaceAll(out, dir, "/home/ada")
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\r\n")
		line = line[strings.LastIndexByte(line, '\r')+1:] // what a progress bar leaves
		// What the shell and seq say of the command that was killed, in several ways.
		if strings.HasPrefix(line, "bash: ") || strings.HasPrefix(line, "seq: ") || strings.Contains(line, " Killed ") {
			continue
		}
		rest := []rune(line)
		for len(rest) > 80 { // as a terminal does
			lines, rest = append(lines, string(rest[:80])), rest[80:]
		}
		lines = append(lines, string(rest))
	}
	return lines
}

const prompt = "$ "

func shellQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// drawn is a terminal with these lines, as SVG. Each line is stretched to its number of columns, so
// that it fits whatever font there is.
func drawn(lines []string) []byte {
	const wide, high, edge = 8.4, 19, 16
	var b bytes.Buffer
	height := len(lines)*high + 2*edge
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`, int(80*wide)+2*edge, height, int(80*wide)+2*edge, height)
	b.WriteString("\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n")
	b.WriteString("<g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#b8bfca\" xml:space=\"preserve\">\n")
	for i, line := range lines {
		if line == "" {
			continue
		}
		columns := utf8.RuneCountInString(line)
		style := ""
		if strings.HasPrefix(line, prompt) {
			style = ` fill="#8fd18a"`
		}
		fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" textLength=\"%.1f\" lengthAdjust=\"spacingAndGlyphs\"%s>%s</text>\n", edge, edge+14+i*high, float64(columns)*wide, style, html.EscapeString(line))
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes()
}
