#include "sandbox/notes.h"

#include "unit.h"

TEST(the_oldest_note_is_forgotten_first_and_a_new_one_of_an_id_takes_the_old_ones_place)
{
	struct notes *all = notes_new(2, sizeof(int));

	notes_put(all, "a", &(int){1});
	notes_put(all, "b", &(int){2});
	notes_put(all, "a", &(int){3});
	notes_put(all, "c", &(int){4});
	assert_null(notes_of(all, "b"));
	ASSERT_EQ(*(const int *)notes_of(all, "a"), 3);
	ASSERT_EQ(*(const int *)notes_of(all, "c"), 4);
	notes_forget(all, "a");
	notes_forget(all, "nobody");
	assert_null(notes_of(all, "a"));
	notes_free(all);
}

TESTS(RUN(the_oldest_note_is_forgotten_first_and_a_new_one_of_an_id_takes_the_old_ones_place))
