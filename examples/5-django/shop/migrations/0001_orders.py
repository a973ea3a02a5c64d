"""The table of orders."""

from django.db import migrations, models

COLUMNS = [
    ("id", models.BigAutoField(primary_key=True)),
    ("item", models.CharField(max_length=50)),
    ("count", models.PositiveIntegerField()),
]


class Migration(migrations.Migration):
    """The first."""

    operations = [migrations.CreateModel("Order", COLUMNS)]
