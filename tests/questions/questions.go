package questions

import (
	"embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/varve-db/varve"
)

//go:embed data
var data embed.FS

// Kinds are the kinds of questions.
var Kinds = []string{"notes", "facts", "code", "german", "chinese"}

// Question has one memory with its answer.
type Question struct{ Kind, Text, Answer string }

// Load returns the memories, in the order in which they are put, which a seed determines, and the
// questions.
func Load(seed uint64) (memories []varve.Memory, list []Question) {
	for _, kind := range Kinds {
		text, err := data.ReadFile("data/" + kind + ".txt")
		if err != nil {
			panic(err)
		}
		var begins, ends []string
		answers := 0
		add := func(id, content string) {
			content, metadata := fields(kind, content)
			memories = append(memories, varve.Memory{ID: id, Content: content, Metadata: metadata})
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			switch rest := line[2:]; line[0] {
			case '?':
				list = append(list, Question{kind, rest, fmt.Sprintf("%s-%02d", kind, answers)})
			case '=':
				add(list[len(list)-1].Answer, rest)
				answers++
			case 'a':
				begins = append(begins, rest)
			case 'z':
				ends = append(ends, rest)
			default:
				panic(kind + ": " + line)
			}
		}
		space := " "
		if kind == "chinese" {
			space = ""
		}
		for i, begin := range begins {
			for j, end := range ends {
				add(fmt.Sprintf("%s-none-%02d-%02d", kind, i, j), begin+space+end)
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	rng.Shuffle(len(memories), func(i, j int) { memories[i], memories[j] = memories[j], memories[i] })
	at := time.Date(2025, 3, 1, 8, 0, 0, 0, time.UTC)
	for i := range memories {
		memories[i].Timestamp = at.Add(time.Duration(i) * time.Hour)
		memories[i].Metadata["session_id"] = fmt.Sprint("s", i/10)
	}
	return memories, list
}

// fields splits a text into its content and the fields that follow it.
func fields(kind, text string) (content string, metadata map[string]any) {
	metadata = map[string]any{}
	words := strings.Split(text, " ")
	var tags []string
	for len(words) > 1 {
		last := words[len(words)-1]
		switch {
		case strings.HasPrefix(last, "#"):
			tags = append(tags, last[1:])
		case strings.HasPrefix(last, "@") && kind == "code":
			metadata["title"] = last[1:]
		case strings.HasPrefix(last, "@"):
			metadata["category"] = last[1:]
		default:
			if len(tags) > 0 {
				metadata["tags"] = tags
			}
			return strings.Join(words, " "), metadata
		}
		words = words[:len(words)-1]
	}
	return text, metadata
}

// Top is how many hits count.
const Top = 10

// Figure is the result for the questions of one kind.
type Figure struct {
	Asked, Found int     // Found: the answer is among the Top first
	MRR          float64 // the mean of 1/place of the answer, 0 if it is not among them
	Missed       []Question
}

// Ask asks all questions: search returns ids, best first. The figures are by kind, those of all kinds
// under "".
func Ask(list []Question, search func(text string) ([]string, error)) (map[string]*Figure, error) {
	all := map[string]*Figure{"": {}}
	for _, q := range list {
		ids, err := search(q.Text)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", q.Text, err)
		}
		at := slices.Index(ids[:min(len(ids), Top)], q.Answer)
		if all[q.Kind] == nil {
			all[q.Kind] = &Figure{}
		}
		for _, f := range []*Figure{all[q.Kind], all[""]} {
			if f.Asked++; at < 0 {
				f.Missed = append(f.Missed, q)
				continue
			}
			f.Found++
			f.MRR += 1 / float64(at+1)
		}
	}
	for _, f := range all {
		f.MRR /= float64(f.Asked)
	}
	return all, nil
}
