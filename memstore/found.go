package memstore

// Explanation has the parts of a hit's score.
type Explanation struct {
	// In a search by words the score, before it is raised, is Own, of the memory and its neighbours,
	// plus Session, three tenths of the best three of its session. Both are BM25F. They are set also if
	// the query has a vector as well.
	Own, Session float64
	Words        []WordShare // in the order of the query, the words that the memory or a neighbour has
	Similarity   float64     // in a search by vector: the cosine, or 1/(1+d²)

	Recency, Importance float64 // how much recency and importance, where the query asks for them, have raised the score
}

// WordShare is what one word of a query contributes to Explanation.Own.
type WordShare struct {
	Word   string // as it is searched for: a stem
	Score  float64
	Near   float64  // the share of Score from neighbours in the session, from 0 to 1
	Fields []string // the fields in which the memory itself has the word
}

// Fragment is the part of a content that has the most of the words of a query.
type Fragment struct {
	Text  string
	From  int      // where it begins in the content, in bytes
	Cut   bool     // the content continues behind it
	Marks [][2]int // the words of the query in Text: start and end, in bytes
}
