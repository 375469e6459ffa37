package wrap

import "testing"

func TestHelp(t *testing.T) {
	for _, c := range []struct {
		name, in, out string
	}{
		{"a paragraph is broken at another width", "one two three four five six\nseven eight nine\n\nten\n", "one two three four five six seven\neight nine\n\nten\n"},
		{"short lines are joined", "one\ntwo\n", "one two\n"},
		{"a column stays one", "  -f, --file file   read the text of a file; - is stdin\n", "  -f, --file file   read the text of a\n                    file; - is stdin\n"},
		{"a command is whole", "Examples:\n  memctl put --file notes.txt --id notes --meta a=b\n", "Examples:\n  memctl put --file notes.txt --id notes --meta a=b\n"},
		{"a wide word", "12345678901234567890123456789012345678901234567890 a b\n", "12345678901234567890123456789012345678901234567890\na b\n"},
		{"wide characters", "\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57 \u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57 end\n", "\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\n\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57\u6f22\u5b57 end\n"},
		{"a command behind a tab", "Linux:\n\tmemctl completion zsh > \"${fpath[1]}/_memctl\"\n", "Linux:\n\tmemctl completion zsh > \"${fpath[1]}/_memctl\"\n"},
		{"columns behind wide characters", "  \u6f22\u5b57  read the text of a file; - is stdin\n", "  \u6f22\u5b57  read the text of a file; - is\n        stdin\n"},
		{"nothing", "", ""},
	} {
		if got := Help(c.in, 38); got != c.out {
			t.Errorf("%s:\n%q\nwant\n%q", c.name, got, c.out)
		}
	}
}
