"""Everyday words of other languages, so that a message need not be English to be understood in part.

Each maps a word to the English word it stands for where words are compared (stems, kinds, verbs);
the text itself stays as it was written. A few hundred words are no translation: what is not here is
foreign to the policy, and a message of such words goes where everything else goes. Words that are
English words too, of another meaning, are left out.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

__all__ = ["english_of"]

#: English word, and behind the colon what it is in German, French, Spanish, Italian, Portuguese.
_TABLE: Final = """
headache: kopfschmerzen kopfschmerz kopfweh migräne céphalée jaqueca cefalea
pain: schmerzen schmerz douleur douleurs dolor dolores dolore dor dores
cough: husten toux tos tosse
fever: fieber fièvre fiebre febbre febre
nausea: übelkeit nausée náuseas nausee
dizzy: schwindlig schwindel vertiges mareado mareada
tired: müde fatigué fatiguée cansado cansada stanco stanca
severity: stärke intensität schweregrad intensité sévérité intensidad intensità intensidade
weight: gewicht poids peso
weigh: wiege pèse
measured: gemessen mesuré medido misurato
pulse: puls pouls pulso polso
temperature: temperatur température temperatura
blood: blut sang sangre sangue
pressure: blutdruck presión pressione pressão
slept: geschlafen dormi dormido dormito
medicine: medikament medizin médicament medicamento medicina
tablet: tablette tabletten comprimé comprimés pastilla pastillas compressa comprimido
took: genommen eingenommen pris tomado tomei
ate: gegessen mangé comido mangiato comi
breakfast: frühstück desayuno colazione
lunch: mittagessen déjeuner almuerzo pranzo almoço
dinner: abendessen dîner cena jantar
calories: kalorien calorías calorie calorias
contact: kontakt contacto contatto contato
friend: freund freundin ami amie amigo amiga amico amica
sister: schwester sœur soeur hermana sorella irmã
brother: bruder frère hermano fratello irmão
mother: mutter mère madre mãe
father: vater père padre pai
birthday: geburtstag anniversaire cumpleaños compleanno aniversário
remind: erinnere erinner rappelle recuérdame recuerda ricordami lembre lembra
call: anrufen anzurufen appeler llamar chiamare
write: schreiben écrire escribir scrivere escrever
note: notiz notiere notier noter apunta anota annota
add: füge hinzufügen ajoute ajouter añade agrega aggiungi adicione acrescente
put: setze setz mets pon metti põe
list: liste lista
shopping: einkaufsliste einkauf compras spesa
book: buch bücher livre livres libro libros libri livro livros
film: filme filmen película películas pellicola
today: heute aujourd'hui hoy oggi hoje
yesterday: gestern ayer ieri ontem
tomorrow: morgen demain mañana domani amanhã
"""


@lru_cache(maxsize=1)
def _table() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _TABLE.strip().splitlines():
        english, words = line.split(":")
        for word in words.split():
            found[word] = english
            found[_plain(word)] = english
    return found


def _plain(word: str) -> str:
    """A word as people type it who have no key for its accents."""
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


@lru_cache(maxsize=8192)
def english_of(word: str) -> str:
    """The English word that a foreign one stands for; the word itself when it is not known."""
    return _table().get(word, word)
