package memstore

// Explanation has the parts of a hit's score.
type Explanation struct {
	// The parts of the score of a search by words. Before it is raised, that score is the sum of Own, the score of the
	// memory and its neighbours, and Session, three tenths of the best three scores of its session. Both are BM25F
	// scores. They are also set if the query has a vector as well.
	Own, Session float64
	Words        []WordShare // the words that the memory or a neighbour has, in the order of the query
	Similarity   float64     // similarity in a search by vector: the cosine, or 1/(1+d²)

	// the amounts by which recency and importance have raised the score, if the query uses them
	Recency, Importance float64
}

// WordShare is the amount that one word of a query contributes to Explanation.Own.
type WordShare struct {
	Word   string // the word as it is searched for: a stem
	Score  float64
	Near   float64  // the share of Score from neighbours in the session, from 0 to 1
	Fields []string // the fields in which the memory itself has the word
}

// Fragment is the part of a memory's content that has the most words of a query.
type Fragment struct {
	Text  string
	From  int      // offset in bytes at which the fragment begins in the content
	Cut   bool     // the content continues after the fragment
	Marks [][2]int // the words of the query in Text: start and end, in bytes
}
