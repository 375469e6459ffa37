package manual

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Nothing in the text of a command is taken for a request or an escape of roff.
func TestTextIsNoMarkup(t *testing.T) {
	t.Parallel()
	c := &cobra.Command{
		Use: "prog [FILE]", Short: `Print \fBtext\fR`, Run: func(*cobra.Command, []string) {},
		Long:    ".so /etc/passwd\n'br\nC:\\new *not* _bold_\n\n  .ig\n  as it is\n\n.TH other",
		Example: "  .de x\n  prog 'a' \\n",
	}
	c.Flags().String("at", "now", ".sy rm at this `time`")
	b := Book{Version: `1"2`, Date: "2026-01-31"}
	pages := b.Pages(c)
	if len(pages) != 1 || pages[0].Name != "prog.1" {
		t.Fatalf("%+v", pages)
	}
	text := pages[0].Text
	for line := range strings.Lines(text) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(word, ".") || strings.HasPrefix(word, "'") {
			switch word {
			case ".TH", ".nh", ".ad", ".SH", ".PP", ".nf", ".fi", ".TP", ".br":
			default:
				if line[0] == '.' || line[0] == '\'' {
					t.Errorf("a line of text is a request: %q", line)
				}
			}
		}
	}
	if strings.Count(text, ".TH") != 2 || strings.Count(text, "\n.TH") != 0 {
		t.Errorf("the text has a title:\n%s", text)
	}
	for _, want := range []string{`\&.so /etc/passwd`, `\&'br`, `C:\enew *not* _bold_`, "  .ig", `\&.TH other`, `\&.de x`, `prog 'a' \en`, `\efBtext\efR`, `"memctl 1\(dq2"`, `\fB\-\-at\fR \fItime\fR`, `\&.sy rm at this time; default now.`} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %s:\n%s", want, text)
		}
	}
}
