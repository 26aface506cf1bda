# Turns session.bash into C strings with commas between, without what only readers need.
s/^[[:space:]]*//
/^#=$/c ,
/^#/d
/^$/d
s/[\\"]/\\&/g
s/.*/"&\\n"/
