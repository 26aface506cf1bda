#include "keeper/lost.h"

#include <stdio.h>

#include "unit.h"

static void each_list(const char *id, const char *why, void *ctx)
{
	char *text = ctx;

	(void)snprintf(text + strlen(text), 64000 - strlen(text), "%s:%s ", id, why);
}

static const char *list(const struct lost *l)
{
	static char text[64000];

	text[0] = '\0';
	lost_each(l, each_list, text);
	return text;
}

TEST(the_last_word_about_an_id_counts_until_it_is_forgotten)
{
	struct lost *l = lost_new();

	lost_add(l, "a", "x");
	lost_add(l, "b", "y");
	lost_add(l, "a", "z");
	ASSERT_STR(list(l), "b:y a:z ");
	lost_forget(l, "b");
	lost_forget(l, "nobody");
	ASSERT_STR(list(l), "a:z ");
	lost_free(l);
}

TEST(the_oldest_makes_room)
{
	struct lost *l = lost_new();
	char id[16];

	for (unsigned i = 0; i <= LOST_MAX; i++) {
		(void)snprintf(id, sizeof id, "n%u", i);
		lost_add(l, id, "w");
	}
	ASSERT_TRUE(strncmp(list(l), "n1:w n2:w ", 10) == 0);
	lost_free(l);
}

TESTS(RUN(the_last_word_about_an_id_counts_until_it_is_forgotten), RUN(the_oldest_makes_room))
